// Package trial is the frame of a load test that ends with a verdict: something is
// played on a stage, whatever is done is counted, whatever is not as it must be is
// noted, and a report tells both. What the programs have of their own is what they
// play, what they do to the nodes meanwhile, and what they hold against what.
package trial
