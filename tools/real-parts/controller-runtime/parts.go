//go:build parts

// Package parts names controller-runtime and what its tests import, so that go.mod and go.sum cover them.
package parts

import (
	_ "github.com/go-logr/zapr"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/gofuzz"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "github.com/onsi/gomega/gexec"
	_ "github.com/onsi/gomega/ghttp"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "golang.org/x/mod/semver"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest/komega"
	_ "sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)
