/// How values of a type are written.
enum EncodingStrategy {
  /// By the type's own `encode(to:)`.
  case codable
  /// By the type's own `write(to:)`.
  case convertible(any CBORConvertible.Type)
  /// As a collection or optional of `Encodable` values, without the way through containers.
  case elements(any EncodableElements.Type)

  init<Value>(of type: Value.Type) {
    if let type = type as? any CBORConvertible.Type {
      self = .convertible(type)
    } else if let type = type as? any EncodableElements.Type {
      self = .elements(type)
    } else {
      self = .codable
    }
  }
}
