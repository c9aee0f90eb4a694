import Larder

/// A model of the scans of a store with given keys: a filter over the bytes of the keys that shares no code with
/// stores.
struct ScanModel: Sendable {
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
    return Array(order.applied(to: inside).prefix(limit))
  }
}

extension ScanOrder {
  /// Returns a list of ascending elements in this order.
  func applied<Element>(to ascending: [Element]) -> [Element] {
    self == .ascending ? ascending : ascending.reversed()
  }
}

/// Returns all elements of a sequence.
func collect<Elements: AsyncSequence>(_ elements: Elements) async throws -> [Elements.Element] {
  var list: [Elements.Element] = []
  for try await element in elements { list.append(element) }
  return list
}

/// Throws a ``Mismatch`` unless a store scans a range as the model does.
///
/// The value of each entry must contain its key.
func expect<Store: DataStore>(
  _ store: Store, scans range: KeyRange, limit: Int = .max, like model: ScanModel
) async throws where Store.Value == SampleValue? {
  for order in ScanOrder.allCases {
    let keys = model.keys(in: range, limit: limit, order: order)
    let what = "in \(range), limit \(limit), \(order)"
    try await expect(
      "keys \(what)", store.keys(in: range, limit: limit, order: order), equals: keys)
    try await expect(
      "entries \(what)", store.entries(in: range, limit: limit, order: order),
      equals: keys.map { StoreEntry(key: $0, value: SampleValue(key: $0)) })
  }
  try await expect(
    "count of \(range)", store.count(in: range), equals: model.keys(in: range).count)
}

/// Bounds at every position relative to twenty keys, "00" to "95" in steps of five: before the first key, on a key,
/// just after a key, between two keys, and after the last key.
enum ScanBounds {
  static let keys: [StoreKey] = (0..<20).map { StoreKey(($0 * 5 < 10 ? "0" : "") + "\($0 * 5)") }

  static let model = ScanModel(keys)

  static let places: [StoreKey] = [
    "", "\0", "0", "00", "00\0", "48", "50", "50\0", "52", "9", "95", "95\0", "99", "a",
  ]

  /// Every pair of bounds, including pairs in the wrong order.
  static let ranges: [KeyRange] = places.flatMap { lower in
    places.map { KeyRange(from: lower, upTo: $0) } + [KeyRange(from: lower, upTo: nil)]
  }
}

/// Keys of all kinds that stores are known to confuse.
enum UnusualKeys {
  static let all: [StoreKey] =
    [
      "a", "A", "a/b", "a//b", "a\\b", "a:b", "a::b", "a b", " a", "a ", "/", "//", ".", "..", "../x", "a/", "a\0b",
      "\0",
      "\n", "\t", "\r\n", "\u{7F}", "\"", "'", "\\", "%", "%00", "\u{E9}", "e\u{301}", "🐄", "☺", "日本", "$", "__proto__",
      "null", "0", "-0", "1e3", ".tmp", "{}", "[]", "\u{2028}", "\u{FEFF}",
    ]
    + [[0x80], [0xC0], [0xFF], [0xFF, 0xFF], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0x61, 0x00], [0x61, 0xFF]].map {
      StoreKey(bytes: $0)
    }
}
