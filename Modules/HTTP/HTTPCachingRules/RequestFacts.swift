#if HTTPCache
import HTTPTypes

/// The values of a request's fields that the rules need, parsed in one pass.
struct RequestFacts: Sendable {
  /// The value of `If-Range`.
  enum RangeCondition: Sendable, Equatable {
    /// An entity tag.
    case entityTag(EntityTag)

    /// A date.
    case date(HTTPDate)

    /// Something else, which matches nothing.
    case invalid
  }

  /// The directives of `Cache-Control`.
  private(set) var cacheControl = CacheControl()

  /// The value of `If-None-Match`, if it is there.
  private(set) var ifNoneMatch: EntityTagList?

  /// The time of `If-Modified-Since`, if it is there and valid.
  private(set) var ifModifiedSince: HTTPDate?

  /// A Boolean value that indicates whether `If-Match` or `If-Unmodified-Since` is there, which only the origin
  /// evaluates.
  private(set) var hasOriginCondition = false

  /// A Boolean value that indicates whether `If-Modified-Since` is there, valid or not.
  private(set) var hasDateCondition = false

  /// The value of `If-Range`, if it is there.
  private(set) var ifRange: RangeCondition?

  /// A Boolean value that indicates whether `Range` is there, valid or not.
  private(set) var hasRange = false

  /// The ranges, if `Range` is there and valid.
  private(set) var ranges: [ByteRange]?

  /// A Boolean value that indicates whether `Authorization` is there.
  private(set) var hasAuthorization = false

  /// A Boolean value that indicates whether the request says that it has a body.
  private(set) var hasBody = false

  /// A Boolean value that indicates whether a client's own condition is there that a stored response can answer.
  var hasCondition: Bool { ifNoneMatch != nil || hasDateCondition }

  /// A Boolean value that indicates whether the client demands validation, by `no-cache` in `Cache-Control`, or in
  /// `Pragma` if there is no `Cache-Control`.
  var demandsValidation: Bool { cacheControl.noCache || (hasPragma && !hasCacheControl) }

  private var hasPragma = false
  private var hasCacheControl = false

  /// Parses the fields of a request.
  ///
  /// - Parameters:
  ///   - fields: The fields.
  ///   - now: The current time in seconds since 1970.
  init(_ fields: HTTPFields, now: Double) {
    for field in fields {
      let name = field.name.canonicalName
      switch name.utf8.count {
      case 5 where name == "range":
        ranges = hasRange ? nil : ByteRange.ranges(in: field.bytes)
        hasRange = true
      case 6 where name == "pragma":
        hasPragma = hasPragma || CacheControl([field.bytes]).noCache
      case 8 where name == "if-match": hasOriginCondition = true
      case 8 where name == "if-range":
        let text = field.bytes.trimmed
        if ifRange != nil {
          ifRange = .invalid
        } else if let tag = EntityTag(text) {
          ifRange = .entityTag(tag)
        } else {
          ifRange = HTTPDate(text, received: now).map { .date($0) } ?? .invalid
        }
      case 13 where name == "cache-control":
        cacheControl.add(field.bytes)
        hasCacheControl = true
      case 13 where name == "authorization": hasAuthorization = true
      case 13 where name == "if-none-match":
        var list = ifNoneMatch ?? EntityTagList()
        list.add(field.bytes)
        ifNoneMatch = list
      case 14 where name == "content-length":
        hasBody = hasBody || CacheControl.deltaSeconds(Array(field.bytes.trimmed)) != 0
      case 17 where name == "transfer-encoding": hasBody = true
      case 17 where name == "if-modified-since":
        ifModifiedSince = hasDateCondition ? nil : HTTPDate(field.bytes.trimmed, received: now)
        hasDateCondition = true
      case 19 where name == "if-unmodified-since": hasOriginCondition = true
      default: break
      }
    }
  }
}
#endif
