#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A type whose values can be a component of a key.
///
/// Give it to a type of your own, an account number for instance, by saying which component stands for it.
public protocol KeyComponentConvertible {
  /// The component that stands for the value.
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
  /// The truth, as ``KeyComponent/boolean(_:)``.
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

extension KeyComponentConvertible where Self: FixedWidthInteger & SignedInteger {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension Int: KeyComponentConvertible {}
extension Int8: KeyComponentConvertible {}
extension Int16: KeyComponentConvertible {}
extension Int32: KeyComponentConvertible {}
extension Int64: KeyComponentConvertible {}
extension Int128: KeyComponentConvertible {}

// Every unsigned type up to 64 bits fits an `Int128`; `UInt128` does not, and is no component.

extension UInt: KeyComponentConvertible {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension UInt8: KeyComponentConvertible {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension UInt16: KeyComponentConvertible {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension UInt32: KeyComponentConvertible {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension UInt64: KeyComponentConvertible {
  /// The number, as ``KeyComponent/integer(_:)``.
  public var keyComponent: KeyComponent { .integer(Int128(self)) }
}

extension UUID: KeyComponentConvertible {
  /// The UUID, as ``KeyComponent/uuid(_:)``.
  public var keyComponent: KeyComponent { .uuid(self) }
}

extension Date: KeyComponentConvertible {
  /// The moment, as ``KeyComponent/date(_:)``.
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
  /// The component of the value, or ``KeyComponent/null`` where there is none.
  public var keyComponent: KeyComponent { self?.keyComponent ?? .null }
}
