import Larder

/// What scans of a store with certain keys must return: a plain filter over the bytes, which shares no code with stores.
struct ScanModel {
  private let keys: [(key: StoreKey, bytes: [UInt8])]

  init(_ keys: [StoreKey]) {
    self.keys = Set(keys).map { ($0, $0.bytes) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }
  }

  func keys(in range: KeyRange, limit: Int = .max, order: ScanOrder = .ascending) -> [StoreKey] {
    let lower = range.lowerBound.bytes
    let upper = range.upperBound?.bytes
    let inside = keys.filter { key in
      !key.bytes.lexicographicallyPrecedes(lower) && upper.map { key.bytes.lexicographicallyPrecedes($0) } ?? true
    }.map(\.key)
    return Array((order == .ascending ? inside : inside.reversed()).prefix(limit))
  }
}

/// Throws a ``Mismatch`` unless a store, whose values hold their keys, scans a range as the model does.
func expect<Store: DataStore>(
  _ store: Store, scans range: KeyRange, limit: Int = .max, like model: ScanModel,
  file: String = #fileID, line: Int = #line
) async throws where Store.Value == SampleValue? {
  for order in ScanOrder.allCases {
    let keys = model.keys(in: range, limit: limit, order: order)
    let what = "in \(range), limit \(limit), \(order)"
    try await expect(
      "keys \(what)", store.keys(in: range, limit: limit, order: order), equals: keys, file: file, line: line)
    try await expect(
      "entries \(what)", store.entries(in: range, limit: limit, order: order),
      equals: keys.map { StoreEntry(key: $0, value: SampleValue(key: $0)) }, file: file, line: line)
  }
  try await expect(
    "count of \(range)", store.count(in: range), equals: model.keys(in: range).count, file: file, line: line)
}
