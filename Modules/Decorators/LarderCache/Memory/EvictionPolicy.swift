/// What decides which entry of a full ``MemoryCache`` has to go.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// W-TinyLFU: keeps what is asked for often, by an estimate of how often each key was asked for lately, and gives
  /// what is new a window of its own whose size follows what pays.
  ///
  /// It withstands scans and loops, as ``lru`` does not, and follows a workload whose recent keys matter, as a
  /// count of uses alone does not.
  case adaptive

  /// The entry that was not used for the longest time.
  case lru
}
