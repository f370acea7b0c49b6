package devserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/config"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// openStore describes the SQLite database and makes its schema when it is new.
func openStore(file string) (*config.SQL, error) {
	if file == "" {
		return &config.SQL{
			PluginName:   sqliteplugin.PluginName,
			DatabaseName: fmt.Sprintf("temporaldev-%d", time.Now().UnixNano()),
			// The plugin sets up the schema of an in-memory database itself.
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		}, nil
	}
	_, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := makeFile(file); err != nil {
			return nil, fmt.Errorf("cannot make the database %s: %w", file, err)
		}
	case err != nil:
		return nil, fmt.Errorf("cannot use the database %s: %w", file, err)
	}
	return fileStore(file, map[string]string{
		// A killed process loses nothing that was committed; only a power cut can
		// take the last commits, which is fine for development and much faster.
		"journal_mode": "wal",
		"synchronous":  "normal",
	}), nil
}

func fileStore(file string, attributes map[string]string) *config.SQL {
	attributes["mode"] = "rwc"
	return &config.SQL{PluginName: sqliteplugin.PluginName, DatabaseName: file, ConnectAttributes: attributes}
}

// makeFile sets the schema up beside the file and moves it into place, so that
// a process killed halfway leaves no half-made database behind.
func makeFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	unfinished := file + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := sqliteschema.SetupSchema(fileStore(unfinished, map[string]string{})); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}

// ensureNamespace makes the namespace; one that exists is left as it is.
func ensureNamespace(store *config.SQL, name string, attributes map[string]enumspb.IndexedValueType) error {
	ns, err := sqliteschema.NewNamespaceConfig(clusterName, name, false, attributes)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return sqliteschema.CreateNamespaces(store, ns)
}
