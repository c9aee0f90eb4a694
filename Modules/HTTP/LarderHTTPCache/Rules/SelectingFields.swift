#if HTTPCache
internal import HTTPTypes

/// The values of the request fields that `Vary` names, in the form in which they are compared (RFC 9111, section 4.1).
struct SelectingFields: Sendable, Equatable {
  /// One selecting field.
  struct Field: Sendable, Equatable {
    /// The name in lower case.
    var name: String

    /// The normalized value, or `nil` if the request didn't have the field.
    var value: [UInt8]?
  }

  /// The fields, sorted by name.
  var fields: [Field]
}
#endif
