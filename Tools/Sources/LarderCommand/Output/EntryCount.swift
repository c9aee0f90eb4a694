/// A number of entries in words.
enum EntryCount {
  /// The number and the noun, like `1 entry` or `12 entries`.
  static func text(_ count: Int) -> String {
    count == 1 ? "1 entry" : "\(count) entries"
  }
}
