#if Inspector
import HTTPTypes
import Hummingbird
import Larder
import LarderCBOR
import LarderHTTPCache

/// The pages about one entry.
extension InspectorPages {
  func entry(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    let (key, bytes) = try await entry(fields, of: store)
    let value = InspectedValue(bytes, format: store.contents.format)
    let form =
      fields["as"].flatMap(InspectedValue.Form.init).flatMap { value.forms.contains($0) ? $0 : nil } ?? value.forms[0]
    let here: KeyValuePairs<String, String?> = ["store": "\(number)", "key": key.hexadecimal]
    let tabs = value.forms.map { other -> HTML in
      let address = Page.address("entry", ["store": "\(number)", "key": key.hexadecimal, "as": other.rawValue])
      return other == form
        ? "<a class=\"button\" aria-current=\"true\" href=\"\(address)\">\(other.title)</a>"
        : "<a class=\"button\" href=\"\(address)\">\(other.title)</a>"
    }
    var changes: HTML?
    if allowsChanges(of: store) {
      let shown = ValueDigest(bytes)
      changes = """
        <a class="button" data-key="e" href="\(Page.address("edit", here))">Edit</a>
        <form action="change" method="post">\(hidden([("store", "\(number)"), ("action", "remove"), ("key", key.hexadecimal), ("shown", shown.text)]))
        <button class="danger">Remove</button></form>
        """
    }
    let expiry: HTML? =
      store.contents.expires
      ? "<li><span class=\"term\">Time to live</span> <span>\(try await timeToLive(of: key, in: store))</span></li>"
      : nil
    return Page(
      title: Readable.key(key), crumbs: crumbs(number, store),
      content: """
        <h1>\(Readable.key(key))</h1>
        <ul class="facts">
        <li><span class="term">Size</span> <span>\(Readable.size(bytes.count))</span></li>
        <li><span class="term">Kind</span> <span>\(value.kind)</span></li>\(expiry)
        <li><span class="term">At rest</span> <span>\(store.contents.information.atRestText)</span></li>
        <li><span class="term">Key in hex</span> <span class="hex">\(key.hexadecimal)</span></li>
        </ul>
        <p class="actions" role="group" aria-label="Forms of the value">\(tabs)</p>
        \(shown(value, as: form, address: Page.address("raw", here)))
        <div class="actions">\(changes)<a class="button" href="\(Page.address("raw", here))" download>Download</a></div>
        """,
      liveAddress: liveAddress(number))
  }

  /// Returns the bytes of a value.
  func raw(_ fields: FormFields) async throws -> Response {
    let (_, store) = try store(fields)
    let (_, bytes) = try await entry(fields, of: store)
    return Response(stored: bytes, name: "value")
  }

  /// The form with which an entry is edited, or added if there is no key.
  func edit(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    try checkAllowsChanges(of: store)
    if try fields.key("key") == nil {
      let forms = EditForm.allCases.map { form -> HTML in
        let isFirst = form == (store.contents.format == .cbor ? .cbor : store.contents.format == .json ? .json : .text)
        return isFirst
          ? "<option value=\"\(form.rawValue)\" selected>\(form.title)</option>"
          : "<option value=\"\(form.rawValue)\">\(form.title)</option>"
      }
      let prefix = try fields.key("prefix")
      return Page(
        title: "Add an entry", crumbs: crumbs(number, store),
        content: """
          <h1>Add an entry</h1>
          <form class="editor" action="change" method="post">\(hidden([("store", "\(number)"), ("action", "add")]))
          <label>Key <input name="newKey" required autocomplete="off" spellcheck="false" value="\(prefix?.string ?? "")"></label>
          <label>Key as <select name="keyAs"><option value="text">text</option><option value="hex">hex</option></select></label>
          <label>Value as <select name="form">\(forms)</select></label>
          <label>Value <textarea name="value" rows="12" spellcheck="false"></textarea></label>
          <div class="actions"><button class="primary">Continue</button></div>
          </form>
          """)
    }
    let (key, bytes) = try await entry(fields, of: store)
    guard let edited = InspectedValue(bytes, format: store.contents.format).edited else {
      throw PageFailure(
        .badRequest, "a value of more than \(Readable.size(InspectedValue.maximumParsedSize)) is not edited in a page")
    }
    return Page(
      title: "Edit", crumbs: crumbs(number, store) + [entryCrumb(number, key)],
      content: """
        <h1>Edit \(Readable.key(key))</h1>
        <form class="editor" action="change" method="post">\
        \(hidden([("store", "\(number)"), ("action", "set"), ("key", key.hexadecimal), ("shown", ValueDigest(bytes).text), ("form", edited.form.rawValue)]))
        <label>Value as \(edited.form.title) <textarea name="value" rows="20" spellcheck="false">
        \(edited.text)</textarea></label>
        <div class="actions"><button class="primary">Continue</button>
        <a class="button" data-key="u" href="\(Page.address("entry", ["store": "\(number)", "key": key.hexadecimal]))">Cancel</a></div>
        </form>
        """)
  }

  /// The findings of a verification, which reads the whole store.
  func damage(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    let limit = 1000
    var result: HTML = """
      <p>A verification reads and checks every entry. In a large store it takes minutes.</p>
      <form action="damage" method="get">\(hidden([("store", "\(number)"), ("run", "yes")]))<button class="primary">Verify now</button></form>
      """
    var note: HTML?
    if fields["run"] == "yes" {
      let report: VerificationReport
      var advice: HTML = """
        To rescue the rest, run <code>larder salvage</code> with the URL of this store and that of a new one. It copies the \
        entries that can be read, lists the others, and leaves this store as it is.
        """
      if let cache = store.httpCache {
        let verification = try await cache.inspector.verify()
        report = verification.report
        advice = "Remove the responses that have them, and the origin sends them again."
        if !verification.isComplete {
          note = "<p>A program kept changing the cache, so its totals were not checked.</p>"
        }
      } else {
        report = try await store.contents.verify()
        if store.salvage != nil {
          advice =
            "<a href=\"\(Page.address("salvage", ["store": "\(number)"]))\">Salvage</a> copies the entries that can be read."
        }
      }
      let rows = report.findings.prefix(limit).map { finding -> HTML in
        let key: HTML? = finding.key.map {
          "<a href=\"\(Page.address("entry", ["store": "\(number)", "key": $0.hexadecimal]))\">\(Readable.key($0))</a>"
        }
        return "<tr><th scope=\"row\">\(key ?? "unknown")</th><td>\(finding.place)</td><td>\(finding.message)</td></tr>"
      }
      result =
        report.findings.isEmpty
        ? "<p class=\"good\" role=\"status\">No damage in \(Readable.count(report.entryCount)) entries.</p>"
        : """
        <p class="problem" role="status">\(Readable.count(report.findings.count)) findings in \(Readable.count(report.entryCount)) entries. \
        \(advice)</p>
        <div class="table"><table><thead><tr><th scope="col">Key</th><th scope="col">Place</th><th scope="col">Finding</th></tr></thead>
        <tbody>\(rows)</tbody></table></div>
        """
    }
    return Page(
      title: "Verify", crumbs: crumbs(number, store), content: "<h1>Verify \(store.name)</h1>\(result)\(note)")
  }

  func crumbs(_ number: Int, _ store: InspectedStore) -> [Page.Crumb] {
    [
      Page.Crumb(title: "Stores", address: "./"),
      Page.Crumb(title: store.name, address: Page.address("keys", ["store": "\(number)"])),
    ]
  }

  func entryCrumb(_ number: Int, _ key: StoreKey) -> Page.Crumb {
    Page.Crumb(
      title: Readable.key(key), address: Page.address("entry", ["store": "\(number)", "key": key.hexadecimal]))
  }

  func hidden(_ fields: [(String, String)]) -> [HTML] {
    fields.map { "<input type=\"hidden\" name=\"\($0.0)\" value=\"\($0.1)\">" }
  }

  func checkAllowsChanges(of store: InspectedStore) throws {
    guard allowsChanges(of: store) else {
      throw PageFailure(
        .forbidden, "the inspector only reads this store; start it with --write, or with `allowsChanges`, to change it")
    }
  }

  private func entry(_ fields: FormFields, of store: InspectedStore) async throws -> (StoreKey, [UInt8]) {
    guard let key = try fields.key("key") else { throw PageFailure(.badRequest, "give a key") }
    guard let bytes = try await store.contents.value(forKey: key) else {
      throw PageFailure(.notFound, "there is no entry with this key")
    }
    return (key, bytes)
  }

  private func timeToLive(of key: StoreKey, in store: InspectedStore) async throws -> String {
    switch try await store.contents.remainingTime(forKey: key) {
    case .after(let duration), .sliding(let duration): Readable.duration(duration)
    case .until(let date): "\(date)"
    case .never: "Never expires"
    case nil: "Expired"
    }
  }

  private func shown(_ value: InspectedValue, as form: InspectedValue.Form, address: String) -> HTML {
    switch form {
    case .image: return "<p><img class=\"value\" src=\"\(address)\" alt=\"The value as an image\"></p>"
    case .json:
      let json = value.json ?? value.cbor.flatMap { try? $0.json() }
      return "<pre class=\"value\" tabindex=\"0\">\(json.map(Self.colored) ?? "")</pre>"
    case .cbor: return "<pre class=\"value\" tabindex=\"0\">\(value.cbor.flatMap { try? $0.notation() } ?? "")</pre>"
    case .text:
      let text = value.text ?? ""
      let part = String(text.prefix(InspectedValue.shownTextSize))
      return "<pre class=\"value\" tabindex=\"0\">\(part)</pre>\(rest(shown: part.utf8.count, of: value))"
    case .hex:
      let part = value.bytes.prefix(InspectedValue.shownHexSize)
      return
        "<pre class=\"value\" tabindex=\"0\">\(Self.dump(of: Array(part)))</pre>\(rest(shown: part.count, of: value))"
    }
  }

  private func rest(shown: Int, of value: InspectedValue) -> HTML? {
    shown == value.bytes.count
      ? nil
      : "<p class=\"quiet\">The first \(Readable.size(shown)) of \(Readable.size(value.bytes.count)). Download the value for all of it.</p>"
  }

  private static func colored(_ json: JSONText) -> HTML {
    var markup: HTML = ""
    json.forEachPart { part, bytes in
      let text = String(decoding: bytes, as: UTF8.self)
      switch part {
      case .name: markup += "<span class=\"name\">\(text)</span>"
      case .string: markup += "<span class=\"string\">\(text)</span>"
      case .number, .literal: markup += "<span class=\"literal\">\(text)</span>"
      case .punctuation, .whitespace: markup += "\(text)"
      }
    }
    return markup
  }

  /// Returns lines of an offset, sixteen bytes and their characters.
  private static func dump(of bytes: [UInt8]) -> String {
    stride(from: 0, to: bytes.count, by: 16).map { start in
      let line = bytes[start..<min(start + 16, bytes.count)]
      let hex = line.map { Hexadecimal.text(of: CollectionOfOne($0)) }.joined(separator: " ")
      let characters = line.map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "." }.joined()
      return
        "\(Hexadecimal.text(of: UInt32(start)))  \(hex)\(String(repeating: " ", count: 3 * (16 - line.count)))  \(characters)"
    }.joined(separator: "\n")
  }
}
#endif
