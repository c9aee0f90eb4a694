/// Laying out JSON for people.
extension JSONText {
  /// The kind of a part of JSON text that is laid out on several lines.
  public enum Part: Sendable, Hashable, CaseIterable {
    /// The name of a member, in quotes.
    case name
    /// A string, in quotes.
    case string
    /// A number.
    case number
    /// `true`, `false` or `null`.
    case literal
    /// A bracket, a brace, a comma or a colon.
    case punctuation
    /// The whitespace between the other parts.
    case whitespace
  }

  /// The text on several lines, with each element and member on a line of its own, indented by two spaces for each level.
  ///
  /// Empty objects and arrays stay on one line. Every digit and escape stays as it was written.
  public var indented: String {
    var bytes: [UInt8] = []
    forEachPart { bytes.append(contentsOf: $1) }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Calls a closure with each part of the indented text in order, so that a program can color it.
  ///
  /// ```swift
  /// func names(in text: JSONText) -> [String] {
  ///   var names: [String] = []
  ///   text.forEachPart { part, bytes in
  ///     if part == .name { names.append(String(decoding: bytes, as: UTF8.self)) }
  ///   }
  ///   return names
  /// }
  /// ```
  ///
  /// - Parameter body: A closure that takes the kind of the part and its text in UTF-8. All the text, in order, is ``indented``.
  /// - Throws: The error that `body` throws.
  public func forEachPart<Failure: Error>(_ body: (Part, ArraySlice<UInt8>) throws(Failure) -> Void) throws(Failure) {
    // For each open container, whether it is an object.
    var containers: [Bool] = []
    var isName = false
    var index = 0
    func newLine() throws(Failure) {
      try body(
        .whitespace, ([UInt8(ascii: "\n")] + [UInt8](repeating: UInt8(ascii: " "), count: 2 * containers.count))[...])
    }
    while index < bytes.count {
      let start = index
      index += 1
      switch bytes[start] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        let isObject = bytes[start] == UInt8(ascii: "{")
        if index < bytes.count, bytes[index] == bytes[start] + 2 {
          index += 1
          try body(.punctuation, bytes[start..<index])
        } else {
          containers.append(isObject)
          isName = isObject
          try body(.punctuation, bytes[start..<index])
          try newLine()
        }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        _ = containers.popLast()
        try newLine()
        try body(.punctuation, bytes[start..<index])
      case UInt8(ascii: ","):
        isName = containers.last == true
        try body(.punctuation, bytes[start..<index])
        try newLine()
      case UInt8(ascii: ":"):
        try body(.punctuation, bytes[start..<index])
        try body(.whitespace, [UInt8(ascii: " ")])
      case UInt8(ascii: "\""):
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
          index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index += 1
        try body(isName ? .name : .string, bytes[start..<index])
        isName = false
      case let first:
        while index < bytes.count, !",]}".utf8.contains(bytes[index]) { index += 1 }
        let isLiteral = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first)
        try body(isLiteral ? .literal : .number, bytes[start..<index])
      }
    }
  }
}
