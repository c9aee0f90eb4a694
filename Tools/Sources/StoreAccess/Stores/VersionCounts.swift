package import Larder

/// The number of values of each version in a store.
package struct VersionCounts: Equatable {
  /// The number of values by version.
  package private(set) var counts: [Int: Int] = [:]

  /// The number of values whose version cannot be read.
  package private(set) var unreadableCount = 0

  /// Counts the versions of all values.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - text: A closure that returns the text of a value, which ``VersionedTextCodec`` has shown.
  /// - Throws: The store's errors, except for values that cannot be read.
  package init<Store: DataStore>(of store: Store, text: (Store.Value) -> JSONText) async throws {
    try await store.visitValues { value in
      guard let value else { return unreadableCount += 1 }
      counts[try VersionFrame(of: text(value).bytes.span.bytes, format: .json).version, default: 0] += 1
    }
  }

  /// The versions in ascending order, with their numbers.
  package var sorted: [(version: Int, count: Int)] {
    counts.sorted { $0.key < $1.key }.map { (version: $0.key, count: $0.value) }
  }
}

extension DataStore {
  /// Calls a closure for each value, in the order of the keys.
  ///
  /// - Parameter visit: Receives a value, or `nil` for one that cannot be read. Its errors end the walk.
  /// - Throws: The store's errors, except for values that cannot be read; the errors of `visit`.
  package func visitValues(_ visit: (Value?) throws -> Void) async throws {
    var remaining: KeyRange = .all
    while true {
      let keys = try await keys(in: remaining, limit: 256, order: .ascending)
      guard let last = keys.last else { return }
      do {
        for case let value? in try await values(forKeys: keys) { try visit(value) }
      } catch let error as StoreError where error.isValueUnreadable {
        for key in keys {
          do {
            if let value = try await value(forKey: key) { try visit(value) }
          } catch let error as StoreError where error.isValueUnreadable {
            try visit(nil)
          }
        }
      }
      remaining = remaining.after(last)
    }
  }
}
