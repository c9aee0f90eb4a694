/// How values of a type are read.
enum DecodingStrategy {
  /// By the type's own `init(from decoder:)`.
  case codable
  /// By the type's own `init(from reader:)`.
  case convertible(any CBORConvertible.Type)
  /// As a collection or optional of `Decodable` values, without the way through containers.
  case elements(any DecodableElements.Type)

  init<Value>(of type: Value.Type) {
    if let type = type as? any CBORConvertible.Type {
      self = .convertible(type)
    } else if let type = type as? any DecodableElements.Type {
      self = .elements(type)
    } else {
      self = .codable
    }
  }
}
