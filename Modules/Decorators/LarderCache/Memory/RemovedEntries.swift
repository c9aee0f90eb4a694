/// Why an entry left a ``MemoryCache``.
public enum RemovalReason: Sendable, Hashable, CaseIterable {
  /// It was removed by a call.
  case removed

  /// Another value took its place, or was to take it and was too large for the cache.
  case replaced

  /// It had to make room for others, or was given up in favour of them.
  case evicted

  /// Its time was over.
  case expired

  /// It was given up to save memory: by ``MemoryCache/trim(to:)``, or since the system was short of memory.
  case trimmed
}

/// The entries that left a cache while its locks were held, to be released and reported after.
@usableFromInline
struct RemovedEntries<Key: Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Removed = (key: Key, value: Value, reason: RemovalReason)

  // Mostly there is one at most, for which no array is made.
  @usableFromInline var first: Removed?
  @usableFromInline var others: [Removed] = []

  @inlinable
  init() {}

  @inlinable
  mutating func append(_ key: Key, _ value: Value, _ reason: RemovalReason) {
    if first == nil {
      first = (key, value, reason)
    } else {
      others.append((key, value, reason))
    }
  }

  /// Tells a listener, where there is one.
  @inlinable
  func report(to listener: MemoryCache<Key, Value>.RemovalListener?) where Key: Hashable {
    guard let listener, let first else { return }
    listener(first.key, first.value, first.reason)
    for removed in others { listener(removed.key, removed.value, removed.reason) }
  }
}
