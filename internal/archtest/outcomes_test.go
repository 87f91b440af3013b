package archtest

import (
	"go/ast"
	"slices"
)

// outcomes are the errors that say whether a command was executed. An error that wraps one
// of them as its cause may say otherwise by itself.
var outcomes = []string{"ErrUnavailable", "ErrOverloaded", "ErrOutcomeUnknown"}

// checkOutcomes refuses errors.Is, and functions named isAny, with one of the outcomes as a
// target: they also find an error that is only a cause. licensing.NotExecuted and licensing.ReasonOf
// heed the outermost error alone.
func checkOutcomes(r *report, f *folder) {
	if f.room != nil && f.room.testOnly {
		return
	}
	for _, s := range f.code() {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !comparesErrors(s, call.Fun) {
				return true
			}
			for _, arg := range call.Args {
				target, ok := arg.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				x, ok := target.X.(*ast.Ident)
				if ok && s.imports[x.Name] == module+"/licensing" && slices.Contains(outcomes, target.Sel.Name) {
					r.at(target.Pos(), "%s may be the mere cause of another outcome: ask licensing.NotExecuted or licensing.ReasonOf", target.Sel.Name)
				}
			}
			return true
		})
	}
}

func comparesErrors(s *source, function ast.Expr) bool {
	switch f := function.(type) {
	case *ast.Ident:
		return f.Name == "isAny"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		return ok && s.imports[x.Name] == "errors" && f.Sel.Name == "Is"
	}
	return false
}
