#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One part of a key that is made of several, such as the account, the date and the number of a transaction.
///
/// Components are written in the tuple encoding of FoundationDB, which keeps their order: keys sort by their first
/// component, then by their second, and so on. Components of different types sort by type, in the order of the cases
/// below; `.integer` sorts by value across all widths.
///
/// Components are equal as their values are in Swift: composed and decomposed text is, and so are -0.0 and 0.0, though
/// they make two keys. Compare the keys where that matters.
///
/// Source of the format: FoundationDB, "Tuple encoding specification", `design/tuple.md` in its repository.
public enum KeyComponent: Sendable, Hashable {
  /// Nothing at all; it sorts before everything else. Type code 0x00.
  case null
  /// Bytes. Type code 0x01.
  case bytes([UInt8])
  /// Text, as its UTF-8. Type code 0x02.
  case string(String)
  /// Components within a component. Type code 0x05.
  case nested([KeyComponent])
  /// An integer, in as many bytes as it needs. Type codes 0x0B to 0x1D, see the source.
  case integer(Int128)
  /// A floating-point number of 32 bits; -0.0 sorts before 0.0. Type code 0x20.
  case float(Float)
  /// A floating-point number of 64 bits; -0.0 sorts before 0.0. Type code 0x21.
  case double(Double)
  /// False or true. Type codes 0x26 and 0x27.
  case boolean(Bool)
  /// A UUID. Type code 0x30.
  case uuid(UUID)

  /// A moment.
  ///
  /// It is a ``double(_:)`` of the seconds since 1 January 2001, UTC: what `Date` holds itself, so that it is exact. (The
  /// format has no date of its own.)
  ///
  /// - Parameter date: The moment.
  public static func date(_ date: Date) -> KeyComponent {
    .double(date.timeIntervalSinceReferenceDate)
  }

  /// The bytes of a ``bytes(_:)`` component, otherwise `nil`.
  public var bytes: [UInt8]? {
    if case .bytes(let bytes) = self { bytes } else { nil }
  }

  /// The text of a ``string(_:)`` component, otherwise `nil`.
  public var string: String? {
    if case .string(let string) = self { string } else { nil }
  }

  /// The components within a ``nested(_:)`` component, otherwise `nil`.
  public var nested: [KeyComponent]? {
    if case .nested(let components) = self { components } else { nil }
  }

  /// The number of an ``integer(_:)`` component, otherwise `nil`.
  public var integer: Int128? {
    if case .integer(let integer) = self { integer } else { nil }
  }

  /// The number of a ``float(_:)`` component, otherwise `nil`.
  public var float: Float? {
    if case .float(let float) = self { float } else { nil }
  }

  /// The number of a ``double(_:)`` component, otherwise `nil`.
  public var double: Double? {
    if case .double(let double) = self { double } else { nil }
  }

  /// The truth of a ``boolean(_:)`` component, otherwise `nil`.
  public var boolean: Bool? {
    if case .boolean(let boolean) = self { boolean } else { nil }
  }

  /// The UUID of a ``uuid(_:)`` component, otherwise `nil`.
  public var uuid: UUID? {
    if case .uuid(let uuid) = self { uuid } else { nil }
  }

  /// The moment of a component that ``date(_:)`` made, otherwise `nil`.
  public var date: Date? {
    double.map { Date(timeIntervalSinceReferenceDate: $0) }
  }
}
