extension String {
  /// The text with every character escaped that may look like another, or like none.
  ///
  /// Letters and marks outside ASCII are written like `\u{E9}`, so that a composed and a decomposed "é" differ, and so is
  /// everything invisible but the end of a line. Symbols and punctuation stay as they are.
  var unambiguous: String {
    var result = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      if scalar == "\n" || scalar.isUnmistakable {
        result.append(scalar)
      } else {
        result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}".unicodeScalars)
      }
    }
    return String(result)
  }
}

extension Unicode.Scalar {
  fileprivate var isUnmistakable: Bool {
    guard !isASCII else { return value >= 0x20 && value != 0x7F }
    switch properties.generalCategory {
    case .otherSymbol, .mathSymbol, .currencySymbol, .otherPunctuation, .dashPunctuation: return true
    default: return false
    }
  }
}
