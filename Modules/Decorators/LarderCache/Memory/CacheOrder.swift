/// What decides which entry has to go: a policy, or what policies are compared with.
@usableFromInline
enum CacheOrder: Sendable {
  case policy(EvictionPolicy)

  /// W-TinyLFU with a window that is always such a part of the cache.
  case fixedWindow(Double)
}
