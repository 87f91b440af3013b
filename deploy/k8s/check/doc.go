// Package check holds no code, only tests of what is in deploy/k8s and deploy/compose.
//
// Most need nothing: overlays are rendered and decoded strictly, and what they say is held
// against each other, against the programs' own help, and against what the nodes serve. Two
// need programs that ../tools/build makes: those that apply everything to a real API server of
// Kubernetes, and have it refuse what is broken on purpose.
package check
