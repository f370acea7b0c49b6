// Command uicheck looks at the Temporal UI of a running devstack as an operator
// does, in a headless browser: the list must show the operations by type, with
// titles that a person can read, and a workflow's page must show the step list
// of the operation. It leaves screenshots.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// settle is how long a page may take to show its content. The UI polls for
// ever, so there is no moment at which a page has finished loading.
const settle = 7 * time.Second

type options struct {
	browser, ui, namespace, out string
}

func main() {
	var o options
	flag.StringVar(&o.browser, "browser", "chromium", "`path` of Chromium")
	flag.StringVar(&o.ui, "ui", "", "`URL` of the Temporal UI")
	flag.StringVar(&o.namespace, "namespace", "infra", "Temporal `namespace`")
	flag.StringVar(&o.out, "out", ".", "`folder` for the screenshots")
	flag.Parse()
	if err := check(o); err != nil {
		fmt.Fprintln(os.Stderr, "uicheck:", err)
		os.Exit(1)
	}
	fmt.Println("uicheck: the Temporal UI shows the operations and their steps; screenshots are in", o.out)
}

// operation is what the UI must show of one operation.
type operation struct {
	kind string // CreateNetwork
	// title is a part of the static summary.
	title string
	// steps are names that the step list must hold.
	steps []string
}

var operations = []operation{
	{kind: "CreateNetwork", title: "Create Network", steps: []string{"EnsureShoot", "EnsureBucket"}},
	{kind: "CreateCluster", title: "Create Cluster", steps: []string{"EnsureDatabase", "WaitDatabaseReady"}},
}

func check(o options) error {
	allocCtx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(o.browser),
		chromedp.NoSandbox, // root in a container has no user namespaces to make one of
		chromedp.WindowSize(1600, 1400),
	)...)
	defer cancel()
	ctx, cancel := chromedp.NewContext(allocCtx)
	defer cancel()
	// The browser lives as long as the context of the first action: no deadline.
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("start %s: %w", o.browser, err)
	}
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	var errs []error
	list, err := look(ctx, o.listURL(""), filepath.Join(o.out, "workflows.png"))
	if err != nil {
		return err
	}
	for _, op := range operations {
		if !strings.Contains(list, op.kind) {
			errs = append(errs, fmt.Errorf("the list of workflows does not name %s", op.kind))
			continue
		}
		errs = append(errs, checkOperation(ctx, o, op))
	}
	return errors.Join(errs...)
}

// checkOperation opens the newest workflow of a type, and its metadata.
func checkOperation(ctx context.Context, o options, op operation) error {
	href, err := firstLink(ctx, o.listURL(fmt.Sprintf("WorkflowType=%q", op.kind)))
	if err != nil {
		return fmt.Errorf("%s: %w", op.kind, err)
	}
	text, err := look(ctx, o.ui+href, filepath.Join(o.out, op.kind+".png"))
	if err != nil {
		return fmt.Errorf("%s: %w", op.kind, err)
	}
	metadata, err := look(ctx, o.ui+strings.TrimSuffix(historyPath.Replace(href), "/")+"/user-metadata", filepath.Join(o.out, op.kind+"-steps.png"))
	if err != nil {
		return fmt.Errorf("%s: %w", op.kind, err)
	}
	var errs []error
	if !strings.Contains(text+metadata, op.title) {
		errs = append(errs, fmt.Errorf("%s: no page says %q", op.kind, op.title))
	}
	for _, step := range op.steps {
		if !strings.Contains(metadata, step) {
			errs = append(errs, fmt.Errorf("%s: the step list does not hold %s; the page says:\n%s", op.kind, step, metadata))
		}
	}
	return errors.Join(errs...)
}

// historyPath turns the address of a workflow's history into that of the
// workflow.
var historyPath = strings.NewReplacer("/history", "", "/timeline", "")

func (o options) listURL(query string) string {
	u := o.ui + "/namespaces/" + url.PathEscape(o.namespace) + "/workflows"
	if query != "" {
		u += "?query=" + url.QueryEscape(query)
	}
	return u
}

// pageText is the text of a page with what it renders from Markdown: the UI has
// that drawn in frames.
const pageText = `document.body.innerText + Array.from(document.querySelectorAll('iframe'))
	.map(f => "\n" + (f.contentDocument ? f.contentDocument.body.innerText : "")).join("")`

// look opens a page, saves a screenshot and returns the text that it shows.
func look(ctx context.Context, address, screenshot string) (string, error) {
	if err := open(ctx, address); err != nil {
		return "", err
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](pageText))
	if err != nil {
		return "", fmt.Errorf("%s: %w", address, err)
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return "", fmt.Errorf("%s: %w", address, err)
	}
	return text, os.WriteFile(screenshot, png, 0o644)
}

func open(ctx context.Context, address string) error {
	if err := chromedp.Do(ctx, chromedp.Navigate(address), chromedp.Sleep(settle)); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// firstLink returns the address of the first workflow that a list shows.
func firstLink(ctx context.Context, list string) (string, error) {
	if err := open(ctx, list); err != nil {
		return "", err
	}
	const script = `Array.from(document.querySelectorAll('a[href*="/workflows/"]'))
		.map(a => a.getAttribute('href')).find(h => /\/workflows\/.+\/[0-9a-f-]{36}/.test(h)) || ""`
	href, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
	if err != nil {
		return "", err
	}
	if href == "" {
		return "", errors.New("the list shows no workflow")
	}
	return href, nil
}
