//go:build parts

// Package parts names the command to build, so that go.mod and go.sum cover all it imports.
package parts

import (
	_ "go.etcd.io/etcd/server/v3"
)
