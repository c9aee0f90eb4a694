#if Inspector
import HTTPTypes
import Larder

/// The fields of a form, in a query or in the body of a request.
struct FormFields: Sendable, Hashable {
  /// The maximum number of fields, above which the rest is ignored.
  static let maximumCount = 64

  private var fields: [(name: String, value: String)] = []

  /// Reads fields in the form `application/x-www-form-urlencoded`.
  ///
  /// A field that is not UTF-8 is missing. Of several fields with one name, the first counts.
  ///
  /// - Parameter text: The text, or `nil` for none.
  init(_ text: String?) {
    for field in (text ?? "").utf8.split(separator: UInt8(ascii: "&"), maxSplits: Self.maximumCount).prefix(
      Self.maximumCount)
    {
      let parts = field.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.text(of: parts[0]), let value = Self.text(of: parts.count > 1 ? parts[1] : "".utf8[...]),
        self[name] == nil
      else { continue }
      fields.append((name, value))
    }
  }

  /// The value of the first field with a name, or `nil` if it is missing.
  subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

  static func == (left: FormFields, right: FormFields) -> Bool {
    left.fields.elementsEqual(right.fields, by: ==)
  }

  func hash(into hasher: inout Hasher) {
    for field in fields {
      hasher.combine(field.name)
      hasher.combine(field.value)
    }
  }

  /// The key in a field, which is hexadecimal, or `nil` if it is missing.
  ///
  /// - Throws: ``PageFailure`` if the field is not a key.
  func key(_ name: String) throws -> StoreKey? {
    guard let text = self[name], !text.isEmpty else { return nil }
    guard let key = StoreKey(hexadecimal: text), key.count <= StoreKey.maximumLength else {
      throw PageFailure(.badRequest, "the address is damaged: '\(name)' is not a key in hexadecimal")
    }
    return key
  }

  private static func text(of encoded: Substring.UTF8View.SubSequence) -> String? {
    var bytes: [UInt8] = []
    var rest = encoded[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "+") {
        bytes.append(UInt8(ascii: " "))
      } else if byte == UInt8(ascii: "%") {
        guard let decoded = Hexadecimal.bytes(of: rest.prefix(2)), decoded.count == 1 else { return nil }
        bytes += decoded
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
#endif
