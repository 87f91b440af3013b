package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
)

// listing describes a list of the service.
type listing struct {
	member  string   // of the response, with the items; empty for rows of several responses
	columns []string // of the table, the most important first
	create  string   // what makes the first item, for the message about an empty list
	read    func(*client.Client, client.Page, ...client.CallOption) (next string, err error)
}

// filterNote is the annotation of flags that select items of a list.
const filterNote = "filter"

// listFlags adds the flags of lists. The flags that the command has already select items. standard is the default
// number of items on a page, and most the maximum.
func listFlags(cmd *cobra.Command, standard, most int) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { _ = cmd.Flags().SetAnnotation(f.Name, filterNote, nil) })
	cmd.Flags().Int("limit", standard, fmt.Sprintf("maximum `number` of items, 1 to %d", most))
	cmd.Flags().String("cursor", "", "`cursor` of the next page, as printed with the previous page")
	cmd.Flags().Bool("all", false, "list all items, page by page")
	cmd.MarkFlagsMutuallyExclusive("limit", "all")
}

// list prints one page of a list, or with --all every page.
func (c *session) list(l listing, most int) error {
	flags := c.cmd.Flags()
	all, _ := flags.GetBool("all")
	limit, _ := flags.GetInt("limit")
	cursor, _ := flags.GetString("cursor")
	page := client.Page{Limit: limit, Cursor: cursor}
	if !all {
		if limit < 1 || limit > most {
			return BadUsage("--limit is %d: write a number from 1 to %d", limit, most)
		}
		return c.onePage(l, page)
	}
	page.Limit = most
	// Rows on a terminal show the progress themselves.
	progress := c.stderr
	if terminal.Is(c.stdout) {
		progress = nil
	}
	bar := terminal.NewMeter(progress, l.member, false)
	defer bar.Clear()
	out := c.newListWriter(l)
	for done := int64(0); ; {
		items, next, err := c.page(l, page)
		if err == nil {
			err = out.items(items)
		}
		if err != nil {
			return err
		}
		done += int64(len(items))
		bar.Set(done, -1)
		if page.Cursor = next; next == "" {
			out.end()
			return nil
		}
	}
}

// onePage prints a page, and how to get the next page.
func (c *session) onePage(l listing, page client.Page) error {
	var next string
	data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
		next, err = l.read(api, page, as...)
		return err
	})
	if err != nil {
		return err
	}
	if c.json {
		err = c.print(data)
	} else {
		var items []json.RawMessage
		if items, err = listItems(data, l.member); err == nil {
			out := c.newListWriter(l)
			err = out.items(items)
			out.end()
		}
	}
	if err == nil && next != "" {
		fmt.Fprintf(c.stderr, "there is more: add --cursor %s for the next page, or --all for all items\n", next)
	}
	return err
}

// page reads a page and returns its items and the cursor of the next page.
func (c *session) page(l listing, page client.Page) (items []json.RawMessage, next string, err error) {
	data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
		next, err = l.read(api, page, as...)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	items, err = listItems(data, l.member)
	return items, next, err
}

func listItems(data json.RawMessage, name string) (items []json.RawMessage, err error) {
	o, err := parseObject(data)
	if err == nil {
		err = json.Unmarshal(o.get(name), &items)
	}
	if err != nil {
		return nil, fmt.Errorf("the list: %w", err)
	}
	return items, nil
}

// listWriter prints pages of items: as a table, or with one JSON object per line, so that a partial output stays
// readable.
type listWriter struct {
	c     *session
	l     listing
	table *table // nil: JSON
	any   bool   // the list has items
}

func (c *session) newListWriter(l listing) *listWriter {
	w := &listWriter{c: c, l: l}
	if !c.json {
		w.table = newTable(c.stdout, l.columns, c.look)
	}
	return w
}

func (w *listWriter) items(items []json.RawMessage) error {
	if len(items) == 0 {
		return nil
	}
	w.any = true
	if w.table == nil {
		return w.c.write(append(bytes.Join(rawBytes(items), []byte("\n")), '\n'))
	}
	for _, item := range items {
		o, err := parseObject(item)
		if err != nil {
			return err
		}
		w.table.add(o)
	}
	if err := w.table.flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// end prints what the table does not show: that the list is empty, and the columns that do not fit.
func (w *listWriter) end() {
	switch {
	case w.table == nil:
	case w.any:
		sayDropped(w.c.stderr, w.table.dropped)
	case w.l.member != "":
		fmt.Fprintln(w.c.stderr, w.c.emptyList(w.l))
	}
}

// emptyList says that a list is empty, and what to do.
func (c *session) emptyList(l listing) string {
	what := strings.ToLower(title(l.member))
	flags := c.cmd.Flags()
	if flags.Changed("cursor") {
		return "no more " + what
	}
	var filters []string
	flags.Visit(func(f *pflag.Flag) {
		if _, selects := f.Annotations[filterNote]; selects {
			filters = append(filters, "--"+f.Name)
		}
	})
	if len(filters) > 0 {
		return fmt.Sprintf("no %s match %s; without filters, the command lists all %[1]s", what,
			strings.Join(filters, " and "))
	}
	return fmt.Sprintf("no %s yet: %s", what, l.create)
}

func rawBytes(items []json.RawMessage) [][]byte {
	texts := make([][]byte, len(items))
	for i, item := range items {
		texts[i] = item
	}
	return texts
}
