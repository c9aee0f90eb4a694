import Larder

/// The number of values of each version in a store.
struct VersionCounts: Equatable {
  /// The number of keys whose values are read at a time.
  private static let sliceSize = 256

  /// The number of values by version.
  private(set) var counts: [Int: Int] = [:]

  /// The number of values whose version cannot be read.
  private(set) var unreadableCount = 0

  /// Counts the versions of all values.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - text: A closure that returns the text of a value, which ``VersionedTextCodec`` has shown.
  /// - Throws: The store's errors, except for values that cannot be read.
  init<Store: DataStore>(of store: Store, text: (Store.Value) -> JSONText) async throws {
    var remaining: KeyRange = .all
    while true {
      let keys = try await store.keys(in: remaining, limit: VersionCounts.sliceSize, order: .ascending)
      guard let last = keys.last else { return }
      do {
        for value in try await store.values(forKeys: keys) { try count(value.map(text)) }
      } catch let error as StoreError where error.concernsStoredValue {
        for key in keys {
          do {
            try count(try await store.value(forKey: key).map(text))
          } catch let error as StoreError where error.concernsStoredValue {
            unreadableCount += 1
          }
        }
      }
      remaining = remaining.after(last)
    }
  }

  private mutating func count(_ value: JSONText?) throws {
    guard let value else { return }
    counts[try VersionFrame(of: value.bytes.span.bytes, format: .json).version, default: 0] += 1
  }

  /// The versions in ascending order, with their numbers.
  var sorted: [(version: Int, count: Int)] {
    counts.sorted { $0.key < $1.key }.map { (version: $0.key, count: $0.value) }
  }
}
