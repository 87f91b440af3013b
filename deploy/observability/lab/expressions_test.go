package lab_test

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// partsOf returns the parts of an alert's expression that must have series, also while the
// alert does not fire: the sides of comparisons and of and, or and unless, and the
// arguments of absent. A side without a metric is left out.
func partsOf(expr string) ([]string, error) {
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	return parts(expr, parsed), nil
}

func parts(text string, expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return parts(text, e.Expr)
	case *parser.Call:
		if e.Func.Name == "absent" {
			return parts(text, e.Args[0])
		}
	case *parser.BinaryExpr:
		if e.Op.IsComparisonOperator() || e.Op.IsSetOperator() {
			return append(parts(text, e.LHS), parts(text, e.RHS)...)
		}
	}
	if len(parser.ExtractSelectors(expr)) == 0 {
		return nil
	}
	return []string{source(text, expr)}
}

// alternatives returns the left side of each or within brackets. If the left side has no
// series, the right side takes its place, and the whole expression would still have series.
func alternatives(expr string) (all []string, err error) {
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		return nil, err
	}
	var found []parser.Expr
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		within := slices.ContainsFunc(path, func(n parser.Node) bool {
			switch n.(type) {
			case *parser.ParenExpr, *parser.AggregateExpr, *parser.Call:
				return true
			}
			return false
		})
		if e, ok := node.(*parser.BinaryExpr); ok && within && e.Op == parser.LOR {
			left := e.LHS
			if chain, ok := left.(*parser.BinaryExpr); ok && chain.Op == parser.LOR {
				left = chain.RHS // what stands before that is another alternative
			}
			found = append(found, left)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b parser.Expr) int { return int(a.PositionRange().Start - b.PositionRange().Start) })
	for _, part := range found {
		all = append(all, source(expr, part))
	}
	return all, nil
}

// source returns the text of a part of an expression.
func source(text string, expr parser.Expr) string {
	at := expr.PositionRange()
	return text[at.Start:at.End]
}
