//go:build parts

// Package parts names the command to build, so that go.mod and go.sum cover all it imports.
package parts

import (
	_ "sigs.k8s.io/descheduler/cmd/descheduler"
)
