package main

import "licet/handlers"

// routeInputs is what a route reads of a request. The table of bad inputs is
// compared with it, and so can't lack any input.
type routeInputs struct {
	handlers.Route
	members   map[string]handlers.Kind // of the body
	queries   []string
	variables []string // of the path
}

func (r *routeInputs) name() string { return r.Method + " " + r.Pattern }

// readsJSON reports whether the body is JSON.
func (r *routeInputs) readsJSON() bool { return r.MediaType == "application/json" }

// inputsOfRoutes lists what each route reads.
func inputsOfRoutes() (routes []*routeInputs) {
	for _, route := range handlers.Routes() {
		r := &routeInputs{Route: route, members: make(map[string]handlers.Kind)}
		for _, in := range route.Inputs {
			switch in.In {
			case handlers.InBody:
				r.members[in.Name] = in.Kind
			case handlers.InQuery:
				r.queries = append(r.queries, in.Name)
			case handlers.InPath:
				r.variables = append(r.variables, in.Name)
			}
		}
		routes = append(routes, r)
	}
	return routes
}
