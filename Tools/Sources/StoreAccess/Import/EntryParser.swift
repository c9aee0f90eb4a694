package import Larder

/// A parser that reads entries from lines of JSON.
package struct EntryParser {
  /// The field of each object that is its key; `nil` if a line consists of a key and a value.
  package let keyField: String?

  /// Creates a parser.
  ///
  /// - Parameter keyField: The field of each object that is its key, if the value is the whole object. Defaults to `nil`,
  ///   for lines `{"key":…,"value":…}` and `{"keyBytes":…,"value":…}`.
  package init(keyField: String? = nil) {
    self.keyField = keyField
  }

  /// Returns the entry of a line of a stream.
  ///
  /// - Parameter line: The line.
  /// - Returns: The entry, or `nil` if the line is blank.
  /// - Throws: ``BadLine``.
  package func entry(of line: LineSplitter.Line) throws -> StoreEntry<JSONText>? {
    guard case .text(var text, let number) = line else {
      throw BadLine("it is longer than \(LineSplitter.defaultMaximumLength >> 20) MiB")
    }
    // Some programs write a byte order mark before UTF-8.
    if number == 1, text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
    guard !text.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) else { return nil }
    return try entry(of: text)
  }

  /// Returns the entry of a line.
  ///
  /// - Parameter line: The line, without its end.
  /// - Throws: ``BadLine``.
  package func entry(of line: ArraySlice<UInt8>) throws -> StoreEntry<JSONText> {
    let text: JSONText
    do {
      text = try JSONText(line)
    } catch let error as JSONSyntaxError {
      throw BadLine("it is not JSON: column \(error.column): \(error.message)")
    }
    guard let members = try text.members() else { throw BadLine("it is not a JSON object") }
    if let keyField {
      guard let field = try member(keyField, of: members) else { throw BadLine("it has no field '\(keyField)'") }
      return StoreEntry(key: try checked(StoreKey(try keyText(of: field))), value: text)
    }
    return try entry(of: members)
  }

  /// Returns the entry of the members of a line as `larder export` writes it.
  private func entry(of members: [JSONText.Member]) throws -> StoreEntry<JSONText> {
    // An unknown field must not be dropped silently.
    if let other = members.first(where: { !["key", "keyBytes", "value"].contains($0.name) }) {
      throw BadLine("it has an unknown field '\(other.name)'; to import whole objects, give --key FIELD")
    }
    let key: StoreKey
    switch (try member("key", of: members), try member("keyBytes", of: members)) {
    case (let text?, nil):
      guard let text = try text.string() else { throw BadLine("its key is not a string") }
      key = StoreKey(text)
    case (nil, let digits?):
      guard let decoded = try digits.string().flatMap(StoreKey.init(hexadecimal:)) else {
        throw BadLine("its keyBytes is not a string of pairs of hexadecimal digits")
      }
      key = decoded
    case (nil, nil): throw BadLine("it has no key")
    case (_?, _?): throw BadLine("it has both key and keyBytes")
    }
    guard let value = try member("value", of: members) else { throw BadLine("it has no value") }
    return StoreEntry(key: try checked(key), value: value)
  }

  private func member(_ name: String, of members: [JSONText.Member]) throws -> JSONText? {
    // By bytes, because strings that only look alike compare equal.
    let matches = members.filter { $0.name.utf8.elementsEqual(name.utf8) }
    guard matches.count < 2 else { throw BadLine("it has the field '\(name)' twice") }
    return matches.first?.value
  }

  private func keyText(of field: JSONText) throws -> String {
    if let text = try field.string() { return text }
    let text = field.description
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    guard digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else {
      throw BadLine("its field '\(keyField ?? "")' is neither a string nor an integer")
    }
    return text
  }

  private func checked(_ key: StoreKey) throws -> StoreKey {
    guard !key.isEmpty else { throw BadLine("its key is empty") }
    guard key.count <= StoreKey.maximumLength else {
      throw BadLine("its key has \(key.count) bytes; the maximum is \(StoreKey.maximumLength)")
    }
    return key
  }
}

/// The reason why a line of input is not an entry.
package struct BadLine: Error, Equatable {
  /// The reason, as a clause about the line.
  package let reason: String

  /// Creates an error.
  ///
  /// - Parameter reason: The reason, as a clause about the line, such as `it has no key`.
  package init(_ reason: String) {
    self.reason = reason
  }
}
