package lab

import "strings"

// Parts takes the expression of an alert apart into what must have series whether it
// fires or not: both sides of each comparison, and of each and, or and unless. An
// alert that compares nothing that exists never fires, and nobody would notice.
// What a side is compared with that is only a number is left out.
//
// It reads no more of PromQL than brackets, quotes and those operators; whatever it
// got wrong Prometheus would refuse.
func Parts(expr string) []string {
	expr = strings.TrimSpace(expr)
	if inner, ok := enclosed(expr, "absent("); ok {
		return Parts(inner)
	}
	if inner, ok := enclosed(expr, "("); ok {
		return Parts(inner)
	}
	for _, operators := range [][]string{{"or", "unless", "and"}, {"==", "!=", ">=", "<=", ">", "<"}} {
		if left, right, found := split(expr, operators); found {
			return append(Parts(left), Parts(right)...)
		}
	}
	if strings.IndexFunc(expr, func(r rune) bool { return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) < 0 {
		return nil // numbers, and what is reckoned from them
	}
	return []string{expr}
}

// enclosed gives what is between an opening and the bracket that closes it, where
// that is the whole expression.
func enclosed(expr, opening string) (string, bool) {
	if !strings.HasPrefix(expr, opening) {
		return "", false
	}
	end := -1
	walk(expr, func(at, depth int) bool {
		if at >= len(opening) && depth == 0 {
			end = at
			return false
		}
		return true
	})
	if end != len(expr) {
		return "", false
	}
	return expr[len(opening) : end-1], true
}

// split cuts an expression at the first of the operators that is in no brackets.
func split(expr string, operators []string) (left, right string, found bool) {
	walk(expr, func(at, depth int) bool {
		if depth > 0 {
			return true
		}
		for _, o := range operators {
			if !isOperator(expr, at, o) {
				continue
			}
			left, right, found = expr[:at], withoutModifiers(expr[at+len(o):]), true
			return false
		}
		return true
	})
	return left, right, found
}

// Alternatives gives what stands before each "or" that is within brackets. What stands behind
// it is there in its place, so that nobody would notice if it never had series.
func Alternatives(expr string) (all []string) {
	starts := map[int]int{} // of what is in brackets, by how many are open
	walk(expr, func(at, depth int) bool {
		switch {
		case strings.HasPrefix(expr[at:], "("):
			starts[depth+1] = at + 1
		case depth > 0 && isOperator(expr, at, "or"):
			all = append(all, strings.TrimSpace(expr[starts[depth]:at]))
			starts[depth] = at + len("or")
		}
		return true
	})
	return all
}

// isOperator tells whether an operator stands at a place, and not a part of a longer word.
func isOperator(expr string, at int, operator string) bool {
	end := at + len(operator)
	return strings.HasPrefix(expr[at:], operator) &&
		!(isWord(operator[0]) && (at > 0 && isWord(expr[at-1]) || end < len(expr) && isWord(expr[end])))
}

// walk calls visit for each place in an expression that is in no quotes, with how
// many brackets are open there, until visit says that it is enough. The last place is
// the expression's end.
func walk(expr string, visit func(at, depth int) bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(expr); i++ {
		c := expr[i]
		if quote != 0 {
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
			continue
		}
		if !visit(i, depth) {
			return
		}
		switch c {
		case '"', '\'', '`':
			quote = c
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
	}
	visit(len(expr), depth)
}

// withoutModifiers leaves out what stands between an operator and its right side.
func withoutModifiers(expr string) string {
	for again := true; again; {
		again = false
		expr = strings.TrimSpace(expr)
		for _, word := range []string{"bool", "on", "ignoring", "group_left", "group_right"} {
			rest, found := strings.CutPrefix(expr, word)
			if !found || rest != "" && isWord(rest[0]) {
				continue
			}
			expr, again = strings.TrimSpace(rest), true
			if _, after, labels := strings.Cut(expr, ")"); labels && strings.HasPrefix(expr, "(") && word != "bool" {
				expr = after
			}
		}
	}
	return expr
}

func isWord(c byte) bool {
	return c == '_' || c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
