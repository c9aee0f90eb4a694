#if Inspector
import HTTPTypes
import Larder
import LarderCBOR

/// The bytes of a value, and the forms in which a page can show them.
struct InspectedValue: Sendable, Hashable {
  /// A form of a value.
  enum Form: String, Sendable, Hashable, CaseIterable {
    case json, cbor, text, image, hex

    var title: String {
      switch self {
      case .json: "JSON"
      case .cbor: "CBOR"
      case .text: "Text"
      case .image: "Image"
      case .hex: "Hex"
      }
    }
  }

  /// A kind of image that a page shows.
  ///
  /// Other kinds, above all SVG, can contain programs.
  enum Image: String, Sendable, Hashable, CaseIterable {
    case png, jpeg, gif, webp

    /// Recognizes an image by its first bytes.
    init?(_ bytes: some Collection<UInt8>) {
      let start = Array(bytes.prefix(12))
      func begins(_ text: String, at offset: Int = 0) -> Bool { start.dropFirst(offset).starts(with: text.utf8) }
      if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
        self = .png
      } else if start.starts(with: [0xFF, 0xD8, 0xFF]) {
        self = .jpeg
      } else if begins("GIF87a") || begins("GIF89a") {
        self = .gif
      } else if begins("RIFF"), begins("WEBP", at: 8) {
        self = .webp
      } else {
        return nil
      }
    }

    var mediaType: String { "image/\(rawValue)" }
  }

  /// The largest value that is parsed, in bytes.
  ///
  /// A larger one is shown as text or in hexadecimal, in part.
  static let maximumParsedSize = 1 << 20
  /// The number of bytes of a value that are shown as text.
  static let shownTextSize = 1 << 16
  /// The number of bytes of a value that are shown in hexadecimal.
  static let shownHexSize = 1 << 12

  let bytes: [UInt8]
  let image: Image?
  let json: JSONText?
  let cbor: CBORItem?
  let text: String?

  /// Examines a value.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - format: The format of the codec. Of binary values, the bytes decide.
  init(_ bytes: [UInt8], format: CodecFormat) {
    self.bytes = bytes
    let isSmall = bytes.count <= Self.maximumParsedSize
    let first = bytes.first ?? 0
    image = Image(bytes)
    // Bytes of no form are not an error here.
    json = isSmall && (format == .json || format == .binary && "{[\"".utf8.contains(first)) ? try? JSONText(bytes) : nil
    cbor =
      isSmall && (format == .cbor || format == .binary && json == nil && first >= 0x80) ? try? CBORItem(bytes) : nil
    text = bytes.isEmpty ? "" : String(validating: bytes, as: UTF8.self)
  }

  /// The forms that the value has, the most telling first.
  var forms: [Form] {
    var forms: [Form] = []
    if image != nil { forms.append(.image) }
    if json != nil { forms.append(.json) }
    if cbor != nil { forms += [.json, .cbor] }
    if text != nil { forms.append(.text) }
    return forms + [.hex]
  }

  /// A name of the kind of the value, for lists.
  var kind: String {
    if let image { return image.rawValue.uppercased() }
    return cbor == nil ? (forms.first ?? .hex).title : Form.cbor.title
  }

  /// A short text for lists.
  var preview: String {
    let length = 120
    if image != nil { return "" }
    let text = cbor.flatMap { try? $0.notation() } ?? text.map { String($0.prefix(length + 1)) }
    guard let text else { return Hexadecimal.text(of: bytes.prefix(24)) + (bytes.count > 24 ? " …" : "") }
    return text.count > length ? text.prefix(length) + " …" : text
  }
}

/// A form in which a value is edited as text.
enum EditForm: String, Sendable, Hashable, CaseIterable {
  /// JSON, stored without the whitespace between its tokens.
  case json
  /// JSON, stored as CBOR.
  case cbor
  /// Text, with line feeds at the ends of lines.
  case text
  /// Bytes in hexadecimal, with whitespace anywhere.
  case hex

  var title: String {
    switch self {
    case .json: "JSON"
    case .cbor: "JSON, stored as CBOR"
    case .text: "Text"
    case .hex: "Hexadecimal"
    }
  }

  /// Returns the bytes of an edited value.
  ///
  /// - Throws: ``PageFailure`` if the text does not have this form.
  func bytes(of text: String) throws -> [UInt8] {
    do {
      switch self {
      case .json: return try JSONText(text).bytes
      case .cbor: return try CBORItem(JSONText(text)).bytes
      // A browser ends the lines of a form with two characters.
      case .text: return Array(text.replacing("\r\n", with: "\n").utf8)
      case .hex:
        if let bytes = Hexadecimal.bytes(of: Array(text.utf8.filter { $0 > 0x20 })) { return bytes }
      }
    } catch {
      throw PageFailure(.badRequest, "the value is not \(title): \(PageFailure.text(of: error))")
    }
    throw PageFailure(.badRequest, "the value is not \(title): expected pairs of hexadecimal digits")
  }
}

extension InspectedValue {
  /// The form in which the value is edited and its text, which gives the same bytes again, or `nil` if it is too large.
  ///
  /// JSON may lose the whitespace between its tokens.
  var edited: (form: EditForm, text: String)? {
    guard bytes.count <= Self.maximumParsedSize else { return nil }
    func isFaithful(_ text: String) -> Bool { !text.unicodeScalars.contains { $0.isInvisible || $0 == "\r" } }
    if let json, isFaithful(json.indented) { return (.json, json.indented) }
    if let cbor, let json = try? cbor.json(), isFaithful(json.indented), (try? CBORItem(json)) == cbor {
      return (.cbor, json.indented)
    }
    if json == nil, cbor == nil, image == nil, let text, isFaithful(text) { return (.text, text) }
    return (.hex, Self.lines(ofHex: bytes))
  }

  private static func lines(ofHex bytes: [UInt8]) -> String {
    stride(from: 0, to: bytes.count, by: 32).map { Hexadecimal.text(of: bytes[$0..<min($0 + 32, bytes.count)]) }.joined(
      separator: "\n")
  }
}
#endif
