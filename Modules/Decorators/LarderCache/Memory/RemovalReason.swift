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
