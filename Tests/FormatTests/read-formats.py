#!/usr/bin/env python3
"""Reads the goldens with Python's standard library, as the articles on the formats describe them.

Usage: read-formats.py FOLDER NAME…

Prints the content of each file as JSON. It is independent of Larder: a file that only Larder can read is not documented.
"""
import base64, datetime, fractions, hashlib, json, math, os, sqlite3, struct, sys, uuid, zlib


def crc32c(data):
    """The CRC-32C of RFC 3720, appendix B.4."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def text(user):
    return f"{user['name']} {user['visits']}"


def unbase64url(digits):
    return base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))


class Reader:
    """Reads binary data from its beginning."""

    def __init__(self, data, order="big"):
        self.data, self.at, self.order = data, 0, order

    def take(self, count):
        assert count <= len(self.data) - self.at, "the data ends early"
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), self.order, signed=signed)

    def variable(self):
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80: return value

    def block(self):
        return self.take(self.number(4))

    def list(self, element):
        return [element() for _ in range(self.number(2))]

    @property
    def is_at_end(self):
        return self.at == len(self.data)

    def rest(self):
        return self.take(len(self.data) - self.at)


# The encoding of values as CBOR


class Tagged:
    def __init__(self, tag, value): self.tag, self.value = tag, value


def cbor_item(reader):
    head = reader.number(1)
    major, low = head >> 5, head & 0x1F
    if major == 7:
        if low in (20, 21, 22): return {20: False, 21: True, 22: None}[low]
        size, form = {25: (2, ">e"), 26: (4, ">f"), 27: (8, ">d")}[low]
        return struct.unpack(form, reader.take(size))[0]
    number = low if low < 24 else reader.number({24: 1, 25: 2, 26: 4, 27: 8}[low])
    if major == 0: return number
    if major == 1: return -1 - number
    if major == 2: return reader.take(number)
    if major == 3: return reader.take(number).decode()
    if major == 4: return [cbor_item(reader) for _ in range(number)]
    if major == 5:
        pairs = [(cbor_item(reader), cbor_item(reader)) for _ in range(number)]
        assert len(dict(pairs)) == number, "a key occurs twice"
        return dict(pairs)
    value = cbor_item(reader)
    if number == 2: return int.from_bytes(value, "big")
    if number == 3: return -1 - int.from_bytes(value, "big")
    if number in (1, 32, 64, 259): return value
    if number == 37: return uuid.UUID(bytes=value)
    if number == 4: return value[1] * fractions.Fraction(10) ** value[0]
    if number == 1001:
        exponent, numerator = value[5] if 5 in value else value[4]
        return float(numerator * fractions.Fraction(2) ** exponent)
    return Tagged(number, value)


# A UUID is a key of a map, and so needs a hash; lists are not keys.
def cbor(data):
    reader = Reader(data)
    value = cbor_item(reader)
    assert reader.is_at_end, "bytes follow the value"
    return value


def printed(value):
    if isinstance(value, bool): return str(value).lower()
    if isinstance(value, bytes): return value.hex()
    if isinstance(value, dict): return "{" + ", ".join(f"{printed(k)}: {printed(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list): return "[" + ", ".join(printed(v) for v in value) + "]"
    if isinstance(value, fractions.Fraction): return str(float(value))
    return str(value)


# The format of JSON files


def json_key(name):
    return bytes.fromhex(name[9:]) if name.startswith("keyBytes:") else name.encode()


def apply_json_changes(entries, changes):
    for change in changes:
        if "set" in change:
            entries[json_key(change["set"])] = change["value"]
        elif "remove" in change:
            entries.pop(json_key(change["remove"]), None)
        else:
            bounds = change["removeAll"]
            low, high = json_key(bounds["from"]), bounds.get("upTo")
            for key in [k for k in entries if low <= k and (high is None or k < json_key(high))]: del entries[key]


def json_file(path, codec="json"):
    data = open(path, "rb").read()
    document = json.loads(data)
    assert document["larder"] == 2 and document.get("codec", "json") == codec
    written, sums = document.get("written"), ""
    if written:
        size = written["blockBytes"]
        blocks = [data[at:min(at + size, written["bytes"])] for at in range(0, written["bytes"], size)]
        assert written["crc32c"] == [f"{crc32c(block):08x}" for block in blocks], "the document is damaged"
        sums = "".join(written["crc32c"])
    entries = {}
    for name, value in document["entries"].items(): entries[json_key(name)] = value
    journal = path + ".journal"
    if os.path.exists(journal):
        lines = open(journal, "rb").read().splitlines()
        for number, line in enumerate(lines):
            parsed = json.loads(line)
            assert crc32c(line[line.index(b",") + 1:]) == int(parsed["crc32c"], 16), "a line is damaged"
            if number == 0:
                assert (parsed["journal"], parsed["codec"]) == (2, codec)
                if parsed["generation"] < document["generation"]: break
                assert parsed["generation"] == document["generation"]
                assert parsed["document"] == f"{crc32c(sums.encode()):08x}"
            apply_json_changes(entries, parsed.get("changes", []))
    return entries


def records(path):
    """The entries of a store of bytes."""
    return {key: base64.b64decode(value) for key, value in json_file(path, "raw").items()}


def users(entries, decode=lambda value: value):
    return {key.decode(): text(decode(value)) for key, value in sorted(entries.items())}


# The format of compressed files


def compressed_file(path):
    data, at, blocks, salt = open(path, "rb").read(), 0, [], None
    while at < len(data):
        assert data[at:at + 4] == b"\x1f\x8b\x08\x04", "this is no block"
        assert data[at + 10:at + 16] == b"\x06\x00BC\x02\x00"
        size = int.from_bytes(data[at + 16:at + 18], "little") + 1
        block = data[at:at + size]
        content = zlib.decompress(block, 31)
        if content:
            if salt is None: salt = int(json.loads(content.split(b"\n")[0])["salt"], 16).to_bytes(8, "little")
            inner = crc32c(block[8:]).to_bytes(4, "little")
            offset = at.to_bytes(8, "little")
            assert int.from_bytes(block[4:8], "little") == (crc32c(salt + offset + inner) or 1), "the seal is wrong"
            blocks.append((block[8], content))
        at += size
    # A long line begins in one block and continues in others.
    texts = []
    for flags, content in blocks:
        if flags & 1: texts[-1] += content
        else: texts.append(content)
    head = json.loads(texts[0].split(b"\n")[0])
    assert head["larder"] == 2 and head["format"] == "compressed"
    entries, pending = {}, []
    for content in texts[2:]:
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        if not lines or not ("batch" in lines[0] or "base" in lines[0]): continue
        for line in lines[1:]:
            if "notes" not in line: pending.append(line)
        if not lines[0].get("more"):
            apply_json_changes(entries, pending)
            pending = []
    assert not pending
    return entries


# The format of queues


def queue_folder(path):
    items, segments = {}, sorted(name for name in os.listdir(path) if name.startswith("segment-"))
    for name in segments:
        reader = Reader(open(os.path.join(path, name), "rb").read(), "little")
        assert reader.take(8) == b"larderQ\n" and reader.number(4) == 2
        length = reader.number(4)
        assert crc32c(reader.data[:length - 4]) == int.from_bytes(reader.data[length - 4:length], "little")
        reader.take(12)
        salt = reader.number(4)
        reader.take(16)
        codec = reader.take(reader.number(2))
        assert codec == b"cbor" and reader.at == length - 4
        reader.take(4)
        frame = 0
        while not reader.is_at_end:
            start = reader.at
            crc, size = reader.number(4) ^ salt, reader.number(4) & 0x7FFFFFFF
            frame += 1
            assert reader.number(4) == frame
            reader.take(4)
            records = Reader(reader.take(size), "little")
            assert crc == crc32c(reader.data[start + 4:reader.at]), "a frame is damaged"
            while not records.is_at_end: queue_record(records, items)
    return {key: f"{text(cbor(payload))}{suffix}" for key, payload, suffix in items.values()}


def queue_state(reader, state):
    """Reads the state data, and returns how the content calls the state."""
    reader.take({0: 0, 1: 8, 2: 8, 3: 9}[state])
    if state in (1, 2): reader.variable()
    if state == 2: reader.take(8)
    return ["", ", delayed", ", leased", ", dead"][state]


def queue_record(reader, items):
    kind = reader.number(1)
    if kind == 1:
        size, crc = reader.number(4), reader.number(4)
        payload = reader.take(size)
        assert crc32c(payload) == crc
        flags = reader.number(1)
        reader.take(1)
        reader.take(reader.number(1))
        sequence = reader.variable()
        reader.variable()
        reader.take(8)
        suffix = queue_state(reader, flags & 3)
        key = f"{sequence:016x}" if flags & 8 else reader.take(reader.variable()).decode()
        items[sequence] = (key, payload, suffix)
    elif kind == 2:
        state, sequence = reader.number(1), reader.variable()
        reader.variable()
        suffix = queue_state(reader, state)
        if sequence in items: items[sequence] = items[sequence][:2] + (suffix,)
    elif kind == 3:
        first = reader.variable()
        for sequence in range(first, first + reader.variable() + 1): items.pop(sequence, None)
    elif kind in (4, 6):
        sequence = reader.variable()
        reader.take(8)
        reader.take(reader.variable())
        if kind == 4: items.pop(sequence, None)
    elif kind == 5:
        sequence, new = reader.variable(), reader.variable()
        reader.take(8)
        if sequence in items: items[new] = items.pop(sequence)[:2] + ("",)
    else:
        assert kind == 7
        for _ in range(reader.variable()):
            reader.variable()
            reader.variable()


# The format of SQLite's stores


def sqlite_file(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    (name, codec, form), = database.execute("SELECT name, codec, format FROM larder")
    assert form == 1
    decode = {"cbor": cbor, "json": json.loads}[codec]
    return users(dict(database.execute(f'SELECT key, value FROM "{name}"')), decode)


# Keys and cursors


def components(key):
    reader, parts = Reader(key), []
    while not reader.is_at_end: parts.append(component(reader))
    return parts


def component(reader):
    code = reader.number(1)
    if code == 0: return "nil"
    if code in (1, 2):
        value = b""
        while True:
            byte = reader.take(1)
            if byte == b"\0":
                if reader.is_at_end or reader.data[reader.at] != 0xFF: break
                reader.take(1)
            value += byte
        return value.decode() if code == 2 else value.hex()
    if 0x0C <= code <= 0x1C:
        size = code - 0x14
        return str(reader.number(size) if size >= 0 else reader.number(-size) - (1 << 8 * -size) + 1)
    if code == 0x21:
        bits = reader.number(8)
        bits = bits ^ 1 << 63 if bits >> 63 else bits ^ (1 << 64) - 1
        return str(struct.unpack(">d", bits.to_bytes(8, "big"))[0])
    return {0x26: "false", 0x27: "true"}[code]


def cursors(path):
    found = {}
    for number, line in enumerate(open(path).read().split()):
        mark, *parts = line.split(".")
        assert mark[0] == str(len(parts))
        index = unbase64url(parts[0]).decode() if len(parts) == 2 else ""
        found[str(number)] = f"{dict(a='ascending', d='descending')[mark[1]]} {index} {unbase64url(parts[-1]).hex()}"
    return found


# The formats of values


def versioned(key, value):
    if key.startswith(b"json/"):
        outer = json.loads(value)
        assert list(outer) == ["$version", "$value"] and outer["$version"] == 2
        return outer["$value"]
    outer = cbor(value)
    assert outer.tag == 1281454678 and outer.value[0] == 2
    return outer.value[1]


def checksummed(key, value):
    content = value[:-4]
    assert crc32c(content) ^ 0xFFFFFFFF == int.from_bytes(value[-4:], "little")
    return json.loads(content) if key.startswith(b"json/") else cbor(content)


def compressed_value(stored, dictionaries={}):
    # As in the article.
    mark, rest, dictionary = stored[0], stored[1:], b""
    if mark == 0: return rest
    assert mark in (1, 2)
    if mark == 2:
        dictionary, rest = dictionaries[int.from_bytes(rest[:2], "little")], rest[2:]
    while rest[0] & 0x80: rest = rest[1:]
    content = zlib.decompressobj(-15, zdict=dictionary).decompress(rest[5:])
    assert zlib.crc32(content, zlib.crc32(dictionary)) == int.from_bytes(rest[1:5], "little")
    return content


def with_dictionaries(folder):
    file, dictionaries = json.load(open(folder + "/users.json.dictionaries")), {}
    assert file["larder-dictionaries"] == 1
    for entry in file["dictionaries"]:
        dictionary = base64.b64decode(entry["base64"])
        checksum = zlib.crc32(dictionary)
        assert f"{checksum:08x}" == entry["crc32"]
        dictionaries[checksum & 0xFFFF] = dictionary
    values = records(folder + "/users.json").items()
    assert {value[:3] for _, value in values} == {b"\2" + number.to_bytes(2, "little") for number in dictionaries}
    return {key.decode(): text(json.loads(compressed_value(value, dictionaries))) for key, value in values}


def expiring(key, value):
    if key.startswith(b"json/"):
        members = json.loads(value)
        return text(members["value"]) + (f" until {members['expires'] // 10**6}" if "expires" in members else "")
    reader = Reader(value)
    kind, deadline = reader.number(1), ""
    if kind > 1: deadline = f" until {reader.number(8, signed=True) // 10**6}"
    if kind > 2: deadline = f" within {reader.number(8) // 10**6}"
    return text(cbor(reader.rest())) + deadline


def key_ring(path):
    ring = json.load(open(path))
    for key in ring["keys"]:
        thumbprint = hashlib.sha256(f'{{"k":"{key["k"]}","kty":"oct"}}'.encode()).digest()
        assert key["kid"] == thumbprint[:8].hex() and key["alg"] == "A256GCM" and len(unbase64url(key["k"])) == 32
    return {key["kid"]: "primary" if key["kid"] == ring["primary"] else "" for key in ring["keys"]}


# The formats of records


def indexed(path):
    entries, found, order = records(path), {}, {}
    catalog = json.loads(entries[b"i/catalog"])
    assert catalog["format"] == 3
    names = {index["id"]: index for index in catalog["indexes"]}
    for key, value in sorted(entries.items()):
        if key.startswith(b"v/"):
            found[key[2:].decode()] = text(json.loads(value))
        elif 0x15 <= key[2] <= 0x1D:
            index = names[int(component(Reader(key[2:])))]
            owner = value if index["isUnique"] else bytes.fromhex(components(key[2:])[-1])
            order.setdefault(index["name"], []).append(owner.decode())
    return found | {name: ", ".join(keys) for name, keys in order.items()}


def bounded(path):
    entries, found, order = records(path), {}, []
    for key, value in sorted(entries.items()):
        if key.startswith(b"v/"): found[key[2:].decode()] = value.hex()
        elif key.startswith(b"b/o"):
            keys = Reader(value)
            while not keys.is_at_end: order.append(keys.take(keys.number(2)).decode())
    totals = Reader(entries[b"b/totals"])
    assert totals.take(2) == b"\1\0"
    size, count = totals.number(8), totals.number(8)
    assert size == sum(len(key) - 2 + len(value) for key, value in entries.items() if key.startswith(b"v/"))
    return found | {"order": ", ".join(order), "totals": f"{size} bytes, {count} entries"}


def store_queue(path):
    entries, found = records(path), {}
    assert entries[b"q/f"] == b"\2json"
    for key, value in entries.items():
        if key.startswith(b"q/i"):
            state = entries[b"q/s" + value[:16]]
            assert state[0] == 2 and state[40 + state[39]:] == key[3:]
            found[key[3:].decode()] = text(json.loads(value[16:])) + ["", ", delayed", ", leased", ""][state[1]]
        elif key.startswith(b"q/x"):
            letter = Reader(value)
            assert letter.number(1) == 2
            letter.take(17)
            state = letter.take(letter.number(2))
            found[state[40 + state[39]:].decode()] = text(json.loads(letter.rest())) + ", dead"
    return found


def coordination(path):
    entries, found = records(path), {}
    for key, value in entries.items():
        record = Reader(value)
        version = record.number(1)
        assert crc32c(value[:-4]) == int.from_bytes(value[-4:], "big")
        if key.startswith((b"lock/h", b"request/h")):
            # A heartbeat. There is one if the lock was held for so long that it was renewed.
            continue
        if key.startswith(b"lock/t"):
            assert version == 1 and len(value) == 30
            number, _, lease, is_held = (record.number(size) for size in (8, 8, 8, 1))
            assert lease == 10_000_000_000 and not is_held
            found["lock/" + key[6:].decode()] = f"term {number}"
        elif key.startswith(b"request/o"):
            assert version == 1 and record.take(32) == hashlib.sha256(b"POST /users").digest()
            end, has_outcome = record.number(8), record.number(1)
            assert end == (1_800_000_000 + 86_400) * 1_000_000 and has_outcome
            found["request/" + key[9:].decode()] = text(json.loads(record.take(len(value) - 46)))
        else:
            assert key.startswith(b"rate/") and version == 2 and record.number(16) == 0
            full, recent = record.number(8, signed=True), record.number(8)
            spacing, now = 60_000_000_000, 1_800_000_000_000_000_000
            found[key.decode()] = f"{5 - recent - math.ceil(max(0, full - now) / spacing)} left"
    return found


def http_cache(path):
    entries, found = records(path), {}
    totals = Reader(entries[b"http/t"])
    assert len(totals.data) == 49 and totals.number(1) == 3
    assert totals.number(8) == sum(len(key) + len(value) for key, value in entries.items() if key != b"http/t")
    for key, value in entries.items():
        if not key.startswith(b"http/r"): continue
        record = Reader(value)
        assert record.number(1) == 1
        record.take(16)
        status = record.number(2)
        record.take(24)
        url = record.block().decode()
        record.block()
        name_and_value = lambda: (record.block(), record.number(1) and record.block())
        record.list(lambda: record.list(name_and_value))
        record.list(lambda: (record.block(), record.block()))
        bodies = dict(record.list(lambda: (record.take(16), record.number(8))))
        body = b""
        for identifier, place, low, high in record.list(lambda: (record.take(16), *(record.number(8) for _ in range(3)))):
            chunks = [value for key, value in sorted(entries.items()) if key.startswith(b"http/b" + identifier)]
            content = b"".join(chunks)
            assert len(content) == bodies[identifier] and len(body) == place
            body += content[low:high]
        record.block()
        assert record.is_at_end
        found[url] = f"{status} {body.decode()}"
    return found


readers = {
    "users.json": lambda path: users(json_file(path)),
    "json-with-journal": lambda path: users(json_file(path + "/users.json")),
    "users.gz": lambda path: users(compressed_file(path)),
    "compressed-open": lambda path: users(compressed_file(path + "/users.gz")),
    "queue": queue_folder,
    "value.cbor": lambda path: {k: printed(v) for k, v in cbor(open(path, "rb").read()).items() if v is not None},
    "cursors.txt": cursors,
    "key.components": lambda path: {"0": ", ".join(components(open(path, "rb").read()))},
    "users.sqlite": sqlite_file,
    "users-text.sqlite": sqlite_file,
    "users-grdb.sqlite": sqlite_file,
    "ring.jwks": key_ring,
    "versioned.json": lambda path: {k.decode(): text(versioned(k, v)) for k, v in records(path).items()},
    "checksummed.json": lambda path: {k.decode(): text(checksummed(k, v)) for k, v in records(path).items()},
    "compressed.json": lambda path: {k.decode(): text(json.loads(compressed_value(v))) for k, v in records(path).items()},
    "dictionaries": with_dictionaries,
    "expiring.json": lambda path: {k.decode(): expiring(k, v) for k, v in records(path).items()},
    "indexed.json": indexed,
    "bounded.json": bounded,
    "store-queue.json": store_queue,
    "coordination.json": coordination,
    "http.json": http_cache,
}

print(json.dumps({name: readers[name](os.path.join(sys.argv[1], name)) for name in sys.argv[2:]}))
