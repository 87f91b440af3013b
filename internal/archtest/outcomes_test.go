package archtest

import (
	"go/ast"
	"slices"
)

// outcomes are the errors that say whether a command was executed. An error that wraps one of them as
// its cause may itself say something else.
var outcomes = []string{"ErrUnavailable", "ErrOverloaded", "ErrOutcomeUnknown"}

// checkOutcomes reports errors.Is, and functions named isAny, with an outcome as a target: these also
// match an error that only has the outcome as its cause. licensing.NotExecuted and licensing.ReasonOf
// look at the outermost error only.
func checkOutcomes(r *report, f *folder) {
	if f.row != nil && f.row.testOnly {
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
					r.at(target.Pos(),
						"%s may be only the cause of another outcome: use licensing.NotExecuted or licensing.ReasonOf",
						target.Sel.Name)
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
