extension SampleValue {
  /// What a special value refuses, and the error that it then throws.
  public enum Refusal: String, Error, Sendable, Hashable, Codable {
    /// It does not want to be encoded.
    case encoding
    /// It does not want to be decoded.
    case decoding
  }
}
