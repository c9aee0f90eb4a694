#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A place between two pages of a range, from which reading goes on.
///
/// A cursor holds the last key that was read and the direction, nothing of the store's inside. So it stays good when
/// entries come and go, when the store is closed and opened again, and when it is handed to a client as ``text`` and
/// comes back. The text is not secret: it shows the key to whoever decodes it. A changed text can lead to another place
/// of the range, never out of it.
public struct PageCursor: Sendable, Hashable {
  /// The key of the last entry that was read.
  public let key: StoreKey

  /// The direction in which the pages go.
  public let order: ScanOrder

  /// Makes a cursor that goes on behind a key.
  ///
  /// - Parameters:
  ///   - key: The key; there need not be an entry under it.
  ///   - order: The direction in which the pages go.
  public init(after key: StoreKey, order: ScanOrder = .ascending) {
    self.key = key
    self.order = order
  }

  /// Makes a cursor of its ``text``.
  ///
  /// - Parameter text: What ``text`` gave, in this process or an earlier one.
  /// - Throws: ``StoreError`` with ``StoreError/Code/invalidArgument`` where it is not the text of a cursor.
  public init(_ text: String) throws {
    let order = ScanOrder.allCases.first { text.hasPrefix(PageCursor.mark(of: $0)) }
    let base64 = text.dropFirst(PageCursor.markLength).replacing("-", with: "+").replacing("_", with: "/")
    let padding = String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    guard
      let order, let bytes = Data(base64Encoded: base64 + padding),
      case let key = StoreKey(bytes: bytes), !key.isEmpty, key.count <= StoreKey.maximumLength
    else {
      throw PageCursor.notACursor
    }
    self.init(after: key, order: order)
    // Base64 has several texts for the same bytes; a cursor has one.
    guard self.text.utf8.elementsEqual(text.utf8) else { throw PageCursor.notACursor }
  }

  /// The cursor as text of letters, digits, "-", "_" and ".", fit for a URL.
  ///
  /// Its form, version 1: `1a.` or `1d.` for ascending or descending, then the key in base64url without padding
  /// (RFC 4648, section 5).
  public var text: String {
    let base64 = Data(key.bytes).base64EncodedString()
    return PageCursor.mark(of: order)
      + base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static var notACursor: StoreError {
    StoreError(.invalidArgument, during: .page, message: "the text is not that of a page cursor")
  }

  private static let markLength = 3

  private static func mark(of order: ScanOrder) -> String {
    switch order {
    case .ascending: "1a."
    case .descending: "1d."
    }
  }
}

extension PageCursor: CustomStringConvertible {
  /// The cursor as text.
  public var description: String { text }
}

extension PageCursor: Codable {
  /// Reads a cursor from its text.
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  /// Writes a cursor as its text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
