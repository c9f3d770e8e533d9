package interleave_test

type mutant struct{}
