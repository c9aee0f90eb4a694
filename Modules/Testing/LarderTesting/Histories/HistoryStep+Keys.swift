import Larder

extension HistoryStep {
  /// The keys that the step names one by one.
  var namedKeys: [StoreKey] {
    switch self {
    case .apply(let changes): changes.compactMap(\.key)
    case .add(_, let keys), .abandon(let keys), .values(let keys): keys
    case .value(let key), .contains(let key): [key]
    case .entries, .keys, .count, .pages, .synchronize, .compact, .reopen, .die: []
    }
  }

  /// Whether the step has to do with a key.
  ///
  /// - Parameter key: The key.
  func touches(_ key: StoreKey) -> Bool {
    switch self {
    case .entries(let range, _, _), .keys(let range, _, _), .count(let range), .pages(let range, _, _):
      range.contains(key)
    case .apply(let changes):
      changes.contains { change in
        if case .removeAll(let range) = change { range.contains(key) } else { change.key == key }
      }
    default: namedKeys.contains(key)
    }
  }
}
