#if Compression && LMDB && SQLite
import Larder
import LarderBounded
import Testing

extension BoundedStore {
  /// Expects that the accounting agrees with the entries, and that these are within the limit.
  func expectConsistent(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    #expect(try await verifyAccounting().findings == [], comment, sourceLocation: sourceLocation)
    let entries = try await entries(in: .all, limit: .max)
    let bytes = entries.reduce(0) { $0 + $1.key.count + $1.value.count }
    #expect(
      try await usage() == BoundedUsage(bytes: bytes, entries: entries.count), comment, sourceLocation: sourceLocation)
    #expect(bytes <= byteLimit && entries.count <= entryLimit ?? .max, comment, sourceLocation: sourceLocation)
  }

  /// The keys of all entries.
  var allKeys: [StoreKey] { get async throws { try await keys(in: .all, limit: .max) } }
}

/// A wall clock that a test sets, in seconds since 1970.
final class WallClock: Sendable {
  private let time = Locked(1_800_000_000.0)

  var seconds: Double {
    get { time.withLock { $0 } }
    set { time.withLock { $0 = newValue } }
  }
}

/// The evictions that a store has reported.
final class EvictionLog: Sendable {
  private let evictions = Locked<[BoundedEviction]>([])

  func add(_ eviction: BoundedEviction) { evictions.withLock { $0.append(eviction) } }

  /// Returns the evictions since the last call.
  func take() -> [BoundedEviction] {
    evictions.withLock { evictions in
      defer { evictions = [] }
      return evictions
    }
  }
}
#endif
