import Foundation
import Larder

/// The removal of a range that a write is about to commit.
struct AnnouncedRemoval: Codable, Equatable, Sendable {
  /// A random number.
  ///
  /// `UUID()` returns a constant if the process has no file descriptors left.
  private let id: UInt64
  private let from: Data
  private let upTo: Data?

  /// Creates a removal.
  ///
  /// - Parameter ranges: The ranges to remove. The announcement covers them all, and possibly more.
  /// - Returns: The removal, or `nil` if there is no range.
  init?(of ranges: [KeyRange]) {
    guard let first = ranges.first else { return nil }
    let range = ranges.dropFirst().reduce(first) { $0.covering($1) }
    // A longer bound is no key. Without it, the record has a limited size.
    func bytes(_ bound: StoreKey) -> Data? { bound.count <= StoreKey.maximumLength ? Data(bound.bytes) : nil }
    id = .random(in: .min ... .max)
    from = bytes(range.lowerBound) ?? Data()
    upTo = range.upperBound.flatMap(bytes)
  }

  /// A Boolean value that indicates whether the announcement covers a key.
  func contains(_ key: StoreKey) -> Bool {
    KeyRange(from: StoreKey(bytes: from), upTo: upTo.map { StoreKey(bytes: $0) }).contains(key)
  }
}

/// The record of the removals of ranges that writers have announced.
///
/// No key that is inserted while a range is being removed may remain in the range. A writer therefore announces the
/// removal before it reads the keys of the range, and commits it on condition that the announcement is still there. A
/// commit that inserts a key withdraws all announcements that cover the key, so their writers start again.
///
/// An announcement that remains after an error or a crash has no effect.
struct AnnouncedRemovals: Equatable, Sendable {
  /// The maximum number of announcements, of which a further one replaces the oldest.
  static let maximumCount = 16

  private(set) var removals: [AnnouncedRemoval] = []

  /// Reads the record.
  ///
  /// - Parameter record: The record, or `nil` if there isn't one. A record that cannot be read contains no
  ///   announcement, so the writers start again.
  init(_ record: [UInt8]?) {
    guard let record, let removals = try? JSONDecoder().decode([AnnouncedRemoval].self, from: Data(record)) else {
      return
    }
    self.removals = removals
  }

  /// Adds an announcement, unless it is there already.
  mutating func announce(_ removal: AnnouncedRemoval) {
    guard !removals.contains(removal) else { return }
    removals = Array(removals.suffix(AnnouncedRemovals.maximumCount - 1)) + [removal]
  }

  /// Withdraws an announcement.
  ///
  /// - Returns: A Boolean value that indicates whether it was there.
  mutating func withdraw(_ removal: AnnouncedRemoval) -> Bool {
    guard let index = removals.firstIndex(of: removal) else { return false }
    removals.remove(at: index)
    return true
  }

  /// Withdraws the announcements that cover one of some keys.
  mutating func withdraw(covering keys: [StoreKey]) {
    removals.removeAll { removal in keys.contains { removal.contains($0) } }
  }

  /// Returns the record, or `nil` if there is no announcement.
  ///
  /// - Throws: `StoreError` with `encodingFailed`.
  func record(store: String, for operation: StoreOperation) throws -> [UInt8]? {
    guard !removals.isEmpty else { return nil }
    return try removals.indexRecord(named: "the record of announced removals", store: store, for: operation)
  }
}
