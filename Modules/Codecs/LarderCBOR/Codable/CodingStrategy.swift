import Foundation

/// The types for which the codec defines a form.
///
/// They are named here so that the linker includes their conformances from a static archive, from which it drops files
/// to which nothing refers. The encoded form must not depend on how the module is linked.
private let convertibles: [ObjectIdentifier: any CBORConvertible.Type] = {
  var types: [any CBORConvertible.Type] = [
    Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, Int128.self, UInt.self, UInt8.self, UInt16.self,
    UInt32.self, UInt64.self, UInt128.self, Float.self, Double.self, String.self, Date.self, Data.self, UUID.self,
    URL.self, Decimal.self, [UInt8].self, CBORItem.self,
  ]
  #if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
  types.append(Float16.self)
  #endif
  return Dictionary(uniqueKeysWithValues: types.map { (ObjectIdentifier($0), $0) })
}()

/// The way values of a type are written or read.
///
/// `Elements` is the metatype of the protocol that writes or reads the elements of a type.
enum CodingStrategy<Elements> {
  /// By the type's own `encode(to:)` or `init(from decoder:)`.
  case codable
  /// In the form that the codec defines for the type.
  case convertible(any CBORConvertible.Type)
  /// As a collection or optional of `Codable` values, without containers.
  case elements(Elements)

  init(of type: Any.Type) {
    if let type = convertibles[ObjectIdentifier(type)] {
      self = .convertible(type)
    } else if let type = type as? Elements {
      self = .elements(type)
    } else {
      self = .codable
    }
  }
}
