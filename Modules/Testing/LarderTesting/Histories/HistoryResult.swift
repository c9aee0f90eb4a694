public import Larder

/// What a ``HistoryStep`` gives back.
public enum HistoryResult: Sendable, Equatable {
  /// Nothing: the step went well.
  case done
  /// A slot for each key: what was read, or what an addition left.
  case slots([Int?])
  /// Whether a key is there.
  case truth(Bool)
  /// Entries of a range.
  case entries([StoreEntry<Int>])
  /// Keys of a range.
  case keys([StoreKey])
  /// How many entries there are.
  case count(Int)
  /// The entries of each page.
  case pages([[StoreEntry<Int>]])
}

extension HistoryResult: CustomStringConvertible {
  /// The result for people to read.
  public var description: String {
    switch self {
    case .done: "done"
    case .slots(let slots): "[\(slots.map { $0.map(String.init) ?? "missing" }.joined(separator: ", "))]"
    case .truth(let isThere): isThere ? "there" : "missing"
    case .entries(let entries): HistoryResult.text(of: entries)
    case .keys(let keys): "[\(keys.map { shortened($0.description).unambiguous }.joined(separator: ", "))]"
    case .count(let count): "\(count)"
    case .pages(let pages): "[\(pages.map(HistoryResult.text).joined(separator: ", "))]"
    }
  }

  private static func text(of entries: [StoreEntry<Int>]) -> String {
    "[\(entries.map { "\(shortened($0.key.description).unambiguous): \($0.value)" }.joined(separator: ", "))]"
  }
}
