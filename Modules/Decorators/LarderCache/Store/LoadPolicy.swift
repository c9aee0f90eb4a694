/// Where a read of a ``CachedStore`` looks for a value.
public enum LoadPolicy: Sendable, Hashable, CaseIterable {
  /// It uses the copy in the cache, or else loads the value from the base, and keeps it. The default.
  case cacheElseLoad

  /// It uses the copy in the cache and never touches the base.
  ///
  /// Where there is no copy the result is `nil`, as for a key that is missing.
  case cacheOnly

  /// It loads the value from the base, whatever the cache holds, and keeps it there.
  ///
  /// What it finds was read after the call began, and no reader afterwards gets an older value. With it one sees what
  /// was written past the cache.
  case reload
}
