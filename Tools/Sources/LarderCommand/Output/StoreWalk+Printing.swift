import Larder

extension StoreWalk {
  /// Goes through the range and prints every entry.
  ///
  /// - Throws: What the store throws; ``BrokenOutput``.
  mutating func printEntries(of store: some DataStore<JSONText>, to output: ByteOutput) async throws {
    let order = order
    try await run(key: \.key) { range, limit in
      try await store.entries(in: range, limit: limit, order: order)
    } visit: { entry in
      try output.writeLine { EntryLine.append(key: entry.key, value: entry.value, to: &$0) }
    }
  }

  /// Goes through the range and prints every key.
  ///
  /// - Throws: What the store throws; ``BrokenOutput``.
  mutating func printKeys(of store: some DataStore<JSONText>, to output: ByteOutput) async throws {
    let order = order
    try await run(key: \.self) { range, limit in
      try await store.keys(in: range, limit: limit, order: order)
    } visit: { key in
      try output.writeLine { EntryLine.append(key: key, to: &$0) }
    }
  }
}
