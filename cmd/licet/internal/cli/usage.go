package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Arguments accepts the arguments that the usage line of a command names: LICENSE_KEY is one, LICENSE_KEY... is one or
// more, and [FILE] is one or none. No argument may be empty, such as an unset shell variable. Decision 1 says what
// cobra's own checks lack.
func Arguments(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	more := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
	switch {
	case len(args) < len(names) && !strings.HasPrefix(names[len(args)], "["):
		return fmt.Errorf("%s needs %s", cmd.CommandPath(), either(names[len(args):], "and"))
	case len(args) > len(names) && !more:
		// The message does not repeat the arguments, which may be secrets by mistake.
		return fmt.Errorf("%s takes %s; arguments received: %d", cmd.CommandPath(), takes(names), len(args))
	}
	if i := slices.Index(args, ""); i >= 0 {
		return fmt.Errorf("argument %d is empty", i+1)
	}
	return nil
}

// takes names the arguments that a command takes.
func takes(names []string) string {
	if len(names) == 0 {
		return "no argument"
	}
	return "only " + either(names, "and")
}

// Subcommand refuses the arguments of a command that only contains subcommands, and suggests subcommands.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := similar(cmd, args[0])
	var names []string
	for _, n := range near {
		if n.Parent() == cmd {
			names = append(names, n.Name())
		} else {
			names = append(names, n.CommandPath())
		}
	}
	return misnamed{
		error: fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), suggestion(names)), near: near,
	}
}

// misnamed is the error of a command line whose command does not exist.
type misnamed struct {
	error
	near []*cobra.Command // the suggestions
}

// similar returns the subcommands that a misspelled name is nearest to. If none is near, similar searches below the
// subcommands.
func similar(cmd *cobra.Command, typed string) []*cobra.Command {
	cmd.SuggestionsMinimumDistance = most
	names := cmd.SuggestionsFor(typed)
	if near := nearest(typed, names); near != "" {
		return named(cmd.Commands(), near)
	}
	if len(names) > 0 {
		return named(cmd.Commands(), names[0]) // has the prefix, or another name
	}
	var below []*cobra.Command
	for _, group := range cmd.Commands() {
		if group.Name() != "completion" {
			below = append(below, group.Commands()...)
		}
	}
	names = nil
	for _, b := range below {
		names = append(names, b.Name())
	}
	return named(below, nearest(typed, names))
}

// named returns the first commands with a name.
func named(commands []*cobra.Command, name string) (found []*cobra.Command) {
	for _, c := range commands {
		if c.Name() == name && len(found) < shown {
			found = append(found, c)
		}
	}
	return found
}

// shown is the maximum number of suggestions.
const shown = 3

// most is the maximum distance of a suggestion.
const most = 2

// nearest returns the known word that a misspelled word is nearest to, such as product-id for produkt-id or for
// product, or an empty string if no word is near.
func nearest(typed string, known []string) string {
	near, least := "", most+1
	for _, word := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(typed), strings.ToLower(word))
		if strings.HasPrefix(word, strings.ToLower(typed)+"-") {
			d = 1 // the user left out the last words
		}
		if d < least && d < len(word) {
			near, least = word, d
		}
	}
	return near
}

// suggestion returns "; did you mean a, b or c?", or an empty string without words.
func suggestion(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "; did you mean " + either(words, "or") + "?"
}

// DidYouMean returns "; did you mean X?" for the known word that a misspelled word is nearest to, or an empty string.
func DidYouMean(typed string, known []string) string {
	if near := nearest(typed, known); near != "" {
		return suggestion([]string{near})
	}
	return ""
}

// either joins words as in "a, b or c".
func either(words []string, last string) string {
	n := len(words) - 1
	if n == 0 {
		return words[0]
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// FlagProblem returns the message for a flag that cobra refuses.
func FlagProblem(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	if cmd.HasSubCommands() {
		if err := Subcommand(cmd, cmd.Flags().Args()); err != nil {
			return err // a misspelled command explains why the flag is unknown
		}
	}
	switch {
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w%s", err, suggestion([]string{"--" + near}))
		}
	case errors.As(err, &empty):
		return fmt.Errorf("--%s needs a value", empty.GetFlag().Name)
	case errors.As(err, &invalid):
		problem := invalid.Unwrap().Error()
		switch kind := invalid.GetFlag().Value.Type(); {
		case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
			problem = "write a whole number such as 10"
		case strings.HasPrefix(kind, "float"):
			problem = "write a number such as 0.5"
		case kind == "duration":
			problem = "write a duration such as 30s or 24h"
		case kind == "bool":
			problem = "write true or false"
		}
		return fmt.Errorf("--%s is %q: %s", invalid.GetFlag().Name, invalid.GetValue(), problem)
	}
	return err
}

// CheckFlags refuses a command line without the flags that the command needs, or with flags that exclude each other.
func CheckFlags(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, needed := f.Annotations[cobra.BashCompOneRequiredFlag]; needed && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if len(missing) > 0 {
		return fmt.Errorf("%s needs %s", cmd.CommandPath(), either(missing, "and"))
	}
	return groupProblem(cmd.ValidateFlagGroups(), cmd)
}

// groupProblem rewords the error of cobra for a group of flags. Cobra exports no type of this error. Its message lists
// the flags of the group in brackets, and then the set flags of a group that allows only one.
func groupProblem(err error, cmd *cobra.Command) error {
	if err == nil {
		return nil
	}
	lists := strings.Split(err.Error(), "[")
	list, _, _ := strings.Cut(lists[len(lists)-1], "]")
	flags := strings.Fields("--" + strings.ReplaceAll(list, " ", " --"))
	switch len(lists) {
	case 2:
		return fmt.Errorf("%s needs %s", cmd.CommandPath(), either(flags, "or"))
	case 3:
		return fmt.Errorf("%s exclude each other: set only one of them", either(flags, "and"))
	}
	return err
}

// Hint returns the lines after an error in flags or arguments: an example of the command, and where its help is. If the
// error suggests one other command, the lines are about that command.
func Hint(cmd *cobra.Command, err error) string {
	var wrong misnamed
	if errors.As(err, &wrong) && len(wrong.near) == 1 {
		cmd = wrong.near[0]
	}
	help := "Help: " + cmd.CommandPath() + " --help\n"
	example := strings.TrimSpace(strings.ReplaceAll(cmd.Example, "\\\n", ""))
	example, _, _ = strings.Cut(example, "\n")
	example, _, _ = strings.Cut(example, "   ") // before a comment
	if example == "" {
		return help
	}
	return "Example: " + strings.Join(strings.Fields(example), " ") + "\n" + help
}
