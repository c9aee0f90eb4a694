extension String {
  /// The same text without line breaks and other control characters, which a path or a key can bring along.
  var inOneLine: String {
    String(UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 }))
  }
}
