// Package deployments tests the lock adapters on deployments of several
// servers: Redis under Sentinels, a Redis Cluster, a ZooKeeper ensemble, an
// etcd cluster. It also tests them with passwords, users and TLS.
package deployments
