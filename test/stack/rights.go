package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// refused is how an API server says that a role lacks something.
var refused = regexp.MustCompile(`system:serviceaccount:[a-z:-]+\\?" cannot [a-z]+ `)

// Refused returns what the product's processes logged of rights that they lack.
// They run with the roles that ship, so these would be missing in production.
func (s *Stack) Refused() error {
	var found []string
	for _, process := range []string{"bridge", "worker", "balancer"} {
		data, err := os.ReadFile(filepath.Join(s.State.Logs, process+".log"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if refused.MatchString(line) && len(found) < 10 {
				found = append(found, process+": "+strings.TrimSpace(line))
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("the shipped roles lack what the processes need:\n%s", strings.Join(found, "\n"))
}
