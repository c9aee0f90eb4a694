#if Inspector
import HTTPTypes
import Hummingbird
import Larder
import LarderHTTPCache

/// A page of the inspector.
struct Page: Sendable, Hashable {
  /// A link at the top of a page, to a page above it.
  struct Crumb: Sendable, Hashable {
    var title: String
    var address: String
  }

  var title: String
  var crumbs: [Crumb] = []
  var content: HTML
  var status = HTTPResponse.Status.ok
  /// The address that the script asks for changes, or `nil` for a page that stays as it is.
  var liveAddress: String?
  /// A Boolean value that indicates whether the script reads the page again after a change, and not only its figures.
  var isReadAgain = true

  /// The whole document.
  func document(isReadOnly: Bool) -> HTML {
    let crumbs = crumbs.map { crumb -> HTML in "<li><a href=\"\(crumb.address)\">\(crumb.title)</a></li>" }
    let still: HTML? = isReadAgain ? nil : " data-still"
    let live: HTML? = liveAddress.map {
      "<p class=\"live\" role=\"status\" data-live=\"\($0)\"\(still) hidden>Live</p>"
    }
    let mode: HTML =
      isReadOnly ? "<span class=\"mode\">Read-only</span>" : "<span class=\"mode writes\">Changes are on</span>"
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>\(title) · Larder</title>
      <link rel="stylesheet" href="style.css">
      <script src="script.js" defer></script>
      </head>
      <body>
      <a class="skip" href="#content">Skip to the content</a>
      <header>
      <a class="brand" href="./" data-key="h">Larder</a>
      <nav aria-label="Place"><ol>\(crumbs)<li aria-current="page">\(title)</li></ol></nav>
      \(live)\(mode)
      </header>
      <main id="content">
      \(content)
      </main>
      <footer><p>Keys: <kbd>/</kbd> search, <kbd>n</kbd> next page, <kbd>p</kbd> previous page, <kbd>u</kbd> up, \
      <kbd>e</kbd> edit, <kbd>h</kbd> all stores</p></footer>
      </body>
      </html>

      """
  }

  func response(isReadOnly: Bool) -> Response {
    Response(
      status: status, headers: [.contentType: "text/html; charset=utf-8"],
      body: .init(byteBuffer: .init(string: document(isReadOnly: isReadOnly).text)))
  }

  /// Returns an address relative to any page, with fields that are escaped.
  ///
  /// Fields without a value are left out.
  static func address(_ page: String, _ fields: KeyValuePairs<String, String?> = [:]) -> String {
    func escaped(_ text: String) -> String {
      text.utf8.map { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          String(UnicodeScalar(byte))
        default: "%" + Hexadecimal.text(of: CollectionOfOne(byte))
        }
      }.joined()
    }
    let query = fields.compactMap { name, value in value.map { "\(name)=\(escaped($0))" } }.joined(separator: "&")
    return query.isEmpty ? page : "\(page)?\(query)"
  }
}

/// An error that a page reports.
struct PageFailure: Error, Sendable, Hashable, CustomStringConvertible {
  let status: HTTPResponse.Status
  let description: String

  init(_ status: HTTPResponse.Status, _ description: String) {
    self.status = status
    self.description = description
  }

  /// The error of a change of something that is not as it was shown.
  static let changedMeanwhile = PageFailure(
    .conflict,
    "it was changed since this page showed it, and was left unchanged; open it again to see the present value")

  /// Returns the text of an error for a page, which names no key or value of a store.
  static func text(of error: any Error) -> String {
    switch error {
    case let error as StoreError: error.message
    case let error as PageFailure: error.description
    default: "\(error)"
    }
  }

  /// The page that reports an error.
  static func page(of error: any Error) -> Page {
    let status: HTTPResponse.Status
    switch error {
    case let error as PageFailure: status = error.status
    case let error as HTTPCacheError: status = error.code == .invalidURL ? .badRequest : .internalServerError
    case let error as StoreError:
      status =
        switch error.code {
        case .invalidKey, .invalidArgument, .unsupported, .valueTooLarge, .encodingFailed: .badRequest
        case .notPermitted: .forbidden
        case .conflict: .conflict
        case .notFound: .notFound
        default: .internalServerError
        }
    default: status = .internalServerError
    }
    let advice: HTML? =
      (error as? StoreError)?.outcome == .unknown ? "<p>It is not known whether the change was made.</p>" : nil
    return Page(
      title: "Error",
      content: "<h1>That did not work</h1><p class=\"problem\" role=\"alert\">\(text(of: error))</p>\(advice)",
      status: status)
  }
}

/// Text for people.
enum Readable {
  /// Returns a number of bytes, such as `1.2 MB`.
  static func size(_ bytes: some BinaryInteger) -> String {
    var (number, unit) = (Double(bytes), 0)
    let units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while number >= 999.5, unit < units.count - 1 { (number, unit) = (number / 1000, unit + 1) }
    if unit == 0 { return "\(bytes) B" }
    let tenths = Int((number * 10).rounded())
    return number < 10 ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(number.rounded())) \(units[unit])"
  }

  /// Returns a number with its thousands apart, such as `1,000,000`.
  static func count(_ number: some BinaryInteger) -> String {
    let digits = Array("\(number.magnitude)")
    let groups = stride(from: digits.count, to: 0, by: -3).map { String(digits[max(0, $0 - 3)..<$0]) }
    return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
  }

  /// Returns a duration with one or two units, such as `3 min 5 s`.
  static func duration(_ duration: Duration) -> String {
    let seconds = duration.components.seconds
    switch seconds {
    case ..<1: return "\(duration / .milliseconds(1) < 1 ? "less than 1" : "\(Int(duration / .milliseconds(1)))") ms"
    case ..<60: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) min \(seconds % 60) s"
    case ..<86400: return "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    default: return "\(count(seconds / 86400)) d \(seconds % 86400 / 3600) h"
    }
  }

  /// Returns a key as text, or in hexadecimal if it is not text.
  static func key(_ key: StoreKey) -> String {
    key.string ?? "0x" + key.hexadecimal
  }
}
#endif
