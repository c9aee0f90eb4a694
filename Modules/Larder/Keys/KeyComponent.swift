public import Foundation

/// A component of a key that consists of several, such as the account, the date and the number of a transaction.
///
/// Components are written in the tuple encoding of FoundationDB. This keeps their order. Keys sort by their first
/// component, then by their second, and so on. Components of different types sort by type, in the order of the cases
/// below. Integers sort by value across all widths.
///
/// Two components are equal if their values are equal in Swift. Composed and decomposed text is equal, and so are -0.0
/// and 0.0, but they make different keys. If the difference matters, compare the keys.
///
/// Source of the format: FoundationDB, "Tuple encoding specification", `design/tuple.md` in its repository.
///
/// ```swift
/// let key = StoreKey(components: [.string("order"), .integer(17)])
/// ```
public enum KeyComponent: Sendable, Hashable {
  /// A null value, which sorts before all other components. Type code 0x00.
  case null
  /// Bytes. Type code 0x01.
  case bytes([UInt8])
  /// Text in UTF-8. Type code 0x02.
  case string(String)
  /// Components within a component. Type code 0x05.
  case nested([KeyComponent])
  /// An integer, in as many bytes as it needs. Type codes 0x0B to 0x1D; see the source.
  case integer(Int128)
  /// A floating-point number of 32 bits. -0.0 sorts before 0.0. Type code 0x20.
  case float(Float)
  /// A floating-point number of 64 bits. -0.0 sorts before 0.0. Type code 0x21.
  case double(Double)
  /// A Boolean value. Type codes 0x26 for false and 0x27 for true.
  case boolean(Bool)
  /// A UUID. Type code 0x30.
  case uuid(UUID)

  /// Returns a component for a date.
  ///
  /// The component is a ``double(_:)`` of the seconds since 1 January 2001, UTC, because the format has no type for
  /// dates. It is exact, because `Date` stores the same number.
  ///
  /// - Parameter date: The date.
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

  /// The components of a ``nested(_:)`` component, otherwise `nil`.
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

  /// The Boolean value of a ``boolean(_:)`` component, otherwise `nil`.
  public var boolean: Bool? {
    if case .boolean(let boolean) = self { boolean } else { nil }
  }

  /// The UUID of a ``uuid(_:)`` component, otherwise `nil`.
  public var uuid: UUID? {
    if case .uuid(let uuid) = self { uuid } else { nil }
  }

  /// The date of a component that ``date(_:)`` created, otherwise `nil`.
  public var date: Date? {
    double.map { Date(timeIntervalSinceReferenceDate: $0) }
  }
}

/// A type whose values can be components of a key.
///
/// To use values of your own type in keys, such as account numbers, return the component that represents the value.
///
/// ```swift
/// enum Status: Int, KeyComponentConvertible {
///   case open, shipped
///
///   var keyComponent: KeyComponent { .integer(Int128(rawValue)) }
/// }
/// let key = StoreKey(components: Status.shipped, order.number)
/// ```
public protocol KeyComponentConvertible {
  /// The component that represents the value.
  var keyComponent: KeyComponent { get }
}

extension KeyComponent: KeyComponentConvertible {
  /// The component itself.
  public var keyComponent: KeyComponent { self }
}

extension String: KeyComponentConvertible {
  /// The text, as ``KeyComponent/string(_:)``.
  public var keyComponent: KeyComponent { .string(self) }
}

extension Substring: KeyComponentConvertible {
  /// The text, as ``KeyComponent/string(_:)``.
  public var keyComponent: KeyComponent { .string(String(self)) }
}

extension Bool: KeyComponentConvertible {
  /// The Boolean value, as ``KeyComponent/boolean(_:)``.
  public var keyComponent: KeyComponent { .boolean(self) }
}

extension Float: KeyComponentConvertible {
  /// The number, as ``KeyComponent/float(_:)``.
  public var keyComponent: KeyComponent { .float(self) }
}

extension Double: KeyComponentConvertible {
  /// The number, as ``KeyComponent/double(_:)``.
  public var keyComponent: KeyComponent { .double(self) }
}

extension KeyComponentConvertible where Self: FixedWidthInteger {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension Int: KeyComponentConvertible {}
extension Int8: KeyComponentConvertible {}
extension Int16: KeyComponentConvertible {}
extension Int32: KeyComponentConvertible {}
extension Int64: KeyComponentConvertible {}
extension Int128: KeyComponentConvertible {}
extension UInt: KeyComponentConvertible {}
extension UInt8: KeyComponentConvertible {}
extension UInt16: KeyComponentConvertible {}
extension UInt32: KeyComponentConvertible {}
extension UInt64: KeyComponentConvertible {}

// Every unsigned type up to 64 bits fits into an `Int128`. `UInt128` does not, so it is not convertible.

extension UUID: KeyComponentConvertible {
  /// The UUID, as ``KeyComponent/uuid(_:)``.
  public var keyComponent: KeyComponent { .uuid(self) }
}

extension Date: KeyComponentConvertible {
  /// The date, as ``KeyComponent/date(_:)``.
  public var keyComponent: KeyComponent { .date(self) }
}

extension Data: KeyComponentConvertible {
  /// The bytes, as ``KeyComponent/bytes(_:)``.
  public var keyComponent: KeyComponent { .bytes(Array(self)) }
}

extension [UInt8]: KeyComponentConvertible {
  /// The bytes, as ``KeyComponent/bytes(_:)``.
  public var keyComponent: KeyComponent { .bytes(self) }
}

extension Optional: KeyComponentConvertible where Wrapped: KeyComponentConvertible {
  /// The component of the value, or ``KeyComponent/null`` for `nil`.
  public var keyComponent: KeyComponent { self?.keyComponent ?? .null }
}

extension StoreKey {
  /// Creates a key from several components, in a form that keeps their order.
  ///
  /// ```swift
  /// let key = StoreKey(components: "txn", account, date, id)
  /// let all = KeyRange.prefix(components: "txn", account)
  /// ```
  ///
  /// A key of components differs from a plain key with the same text. In the example, `StoreKey("txn")` is not a prefix
  /// of `key`.
  ///
  /// - Parameter components: The components, the most significant one first: strings, integers, floating-point numbers,
  ///   Boolean values, dates, UUIDs, bytes, optionals of these, or ``KeyComponent`` itself, which describes the format.
  public init(components: any KeyComponentConvertible...) {
    self.init(components: components.map(\.keyComponent))
  }

  /// Creates a key from several components, in a form that keeps their order.
  ///
  /// - Parameter components: The components, the most significant one first.
  public init(components: [KeyComponent]) {
    var encoder = KeyComponentEncoder()
    encoder.append(components)
    self.init(bytes: encoder.bytes)
  }

  /// Returns the components of a key that was created from components.
  ///
  /// ```swift
  /// let key = StoreKey(components: "txn", "GB33-0042", date, 17)
  /// let ofAccount = KeyRange.prefix(components: "txn", "GB33-0042")
  /// let number = try key.components()[3].integer
  /// ```
  ///
  /// - Returns: The components, the most significant one first.
  /// - Throws: ``StoreError`` with `invalidKey` if the key was not created from components, or is longer than
  ///   ``maximumLength``.
  public func components() throws -> [KeyComponent] {
    guard count <= StoreKey.maximumLength else {
      throw KeyComponentDecoder.error("it must have at most \(StoreKey.maximumLength) bytes, not \(count)", key: self)
    }
    var decoder = KeyComponentDecoder(key: self)
    return try decoder.components()
  }
}

extension StoreKey {
  /// A Boolean value that indicates whether the key can be a bound of a range of keys that were created from
  /// components.
  ///
  /// A bound begins with the type code of a component, but it may end within one. Two other bounds are possible. The upper
  /// bound of `KeyRange.prefix(_:)` is the byte after a type code if only that byte could be incremented. A bound that
  /// begins with 0xFF is greater than all components.
  public var isBoundOfComponents: Bool {
    guard let first = bytes.first, first < 0xFF else { return true }
    return KeyComponentCode.isKnown(first) || (count == 1 && KeyComponentCode.isKnown(first &- 1))
  }
}

extension KeyRange {
  /// Returns the range of keys that begin with the given components, including the key of only these components.
  ///
  /// ```swift
  /// let ordersOfAda = try await orders.entries(in: .prefix(components: "order", "ada"), limit: 20, order: .descending)
  /// ```
  ///
  /// - Parameter components: The first components of the keys; see
  ///   ``StoreKey/init(components:)-(KeyComponentConvertible...)``.
  public static func prefix(components: any KeyComponentConvertible...) -> KeyRange {
    prefix(components: components.map(\.keyComponent))
  }

  /// Returns the range of keys that begin with the given components, including the key of only these components.
  ///
  /// - Parameter components: The first components of the keys.
  public static func prefix(components: [KeyComponent]) -> KeyRange {
    let key = StoreKey(components: components)
    // 0xFF is not a type code. After the prefix it can only belong to an escaped NUL in a longer string, so a range of
    // plain bytes would include "a\0b" with "a".
    return components.isEmpty ? .all : KeyRange(from: key, upTo: StoreKey(bytes: key.bytes + [0xFF]))
  }
}
