/// How values of a type are written or read.
///
/// `Elements` is the protocol of what writes or reads its elements, as a type.
enum CodingStrategy<Elements> {
  /// By the type's own `encode(to:)` or `init(from decoder:)`.
  case codable
  /// By the type's own `write(to:)` or `init(from reader:)`.
  case convertible(any CBORConvertible.Type)
  /// As a collection or optional of `Codable` values, without the way through containers.
  case elements(Elements)

  init(of type: Any.Type) {
    if let type = type as? any CBORConvertible.Type {
      self = .convertible(type)
    } else if let type = type as? Elements {
      self = .elements(type)
    } else {
      self = .codable
    }
  }
}
