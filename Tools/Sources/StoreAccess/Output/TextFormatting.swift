extension Duration {
  /// The duration in seconds, rounded down to a tenth, such as `1.9 s`.
  package var inSeconds: String {
    let tenths = components.seconds * 10 + components.attoseconds / 100_000_000_000_000_000
    return "\(tenths / 10).\(tenths % 10) s"
  }
}

/// A number of entries as text.
package enum EntryCount {
  /// Returns the number with its noun, such as `1 entry` or `12 entries`.
  package static func text(_ count: Int) -> String {
    count == 1 ? "1 entry" : "\(count) entries"
  }
}

extension String {
  /// The text with spaces in place of line breaks and other control characters, which a path or a key can contain.
  package var inOneLine: String {
    String(UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }

  /// Returns the text with spaces after it, up to a width, or followed by one space if it is longer.
  package func padding(to width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
