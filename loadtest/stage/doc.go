// Package stage is a service that a load test plays on, from outside: nodes of
// licet before an etcd, a balancer before the nodes, and a browser for the pay
// pages. Nodes are killed and restarted on it, and what they leave behind is proven
// to be whole.
//
// Where package rig starts single processes, this is how they stand together.
package stage
