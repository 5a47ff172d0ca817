# SPDX-License-Identifier: Apache-2.0
"""A real coding agent, as npm has it, at work in a real guest: it talks with a model, whose API is played on this host's
loopback, changes the share and runs what it wrote. Its key is given by --secret, and is nowhere in the guest."""

import contextlib
import http.server
import json
import os
import pathlib

import agent_package
import harness
from harness import directory, expect, expect_equal
from test_secrets import found_in
from test_ways import Names, authority, serving, tool, ways

KEY = "AIzaOnlyTheHostHasThisKey0123456789abcd"
FILE, PROGRAM = "answer.py", "print(6 * 7)\n"
SETTINGS = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
# Its home is the guest's own; the agent is told what a user tells it in a dialogue, and not to start itself anew, with other
# settings of Node's, which takes a minute in an emulated host.
SCRIPT = f"""
export HOME=/tmp/home GEMINI_CLI_NO_RELAUNCH=true && mkdir -p $HOME/.gemini && echo '{json.dumps(SETTINGS)}' > $HOME/.gemini/settings.json
"$1/node" "$2/{agent_package.PROGRAM}" --yolo --model gemini-2.5-flash --prompt 'Write {FILE} and run it.' </dev/null
echo "status: $?"
echo "key: $GEMINI_API_KEY"
"""


class Model(http.server.BaseHTTPRequestHandler):
    """Answers as the model's API does, by server-sent events: a file is to be written, it is to be run, that is all."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.keys.append(self.headers.get("x-goog-api-key", ""))
        contents = json.loads(body).get("contents", [])
        results = [part["functionResponse"] for content in contents for part in content["parts"] if "functionResponse" in part]
        self.server.results[:] = results
        try:
            part = self.server.next_part(len(results))
        except Exception as error:
            self.server.failures.append(error)
            raise
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
        event = b"data: " + json.dumps(answer).encode() + b"\r\n\r\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in (event[:20], event[20:], b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))


class Api(http.server.ThreadingHTTPServer):
    """The model's side. Before its last word @look is called: the agent is there then, and has all that it will ever have."""

    daemon_threads = True

    def __init__(self, work, look):
        super().__init__(("127.0.0.1", 0), Model)
        self.work, self.look, self.keys, self.results, self.failures = work, look, [], [], []

    def handle_error(self, *_):
        pass  # what failed is in failures

    def next_part(self, done):
        if done == 0:
            return {"functionCall": {"name": "write_file", "args": {"file_path": f"{self.work}/{FILE}", "content": PROGRAM}}}
        if done == 1:
            return {"functionCall": {"name": "run_shell_command", "args": {"command": f"python3 {FILE}"}}}
        self.look()
        return {"text": f"All done with {KEY}."}


@contextlib.contextmanager
def model(place, work, look):
    authority(place, "api.test")
    server = Api(work, look)
    with serving(server, place):
        yield server


def agent():
    try:
        return agent_package.installed()
    except agent_package.NotInstalled as reason:
        raise harness.Skip(str(reason)) from None


def who_has(words):
    """The processes of the run, by name, with those of @words that are in their memory: mvagent-vmm's has all of the guest's."""
    return {pathlib.Path(command.split()[0]).name: found_in(pid, words) for pid, command in harness.processes().items()}


def test_a_conversation_by_secret():
    if os.getuid():
        raise harness.Skip("another user's memory cannot be read")
    package = agent()
    seen = {}
    with directory() as place, directory() as tools, directory() as work:
        tool("node", tools)
        words = [KEY.encode(), KEY[10:].encode(), PROGRAM.strip().encode()]
        with model(place, work, lambda: seen.update(who_has(words))) as api, Names({"api.test": ["127.0.0.1"]}) as names:
            port = api.server_address[1]
            result, outcome = harness.run_json(
                *ways(names, f"127.0.0.1:{port}"), "--secret", f"GEMINI_API_KEY@api.test:{port}",
                "--env", f"GOOGLE_GEMINI_BASE_URL=https://api.test:{port}", "--env", f"LD_LIBRARY_PATH={tools}",
                "--share", str(work), "--share", f"{tools}:ro", "--share", f"{package}:ro", "--at", "/opt/agent",
                "--memory", "1G", "--", "sh", "-c", SCRIPT, "agent", str(tools), "/opt/agent",
                env={**os.environ, "SSL_CERT_FILE": str(place / "ca.pem"), "GEMINI_API_KEY": KEY}, limit=500)
        expect_equal(api.failures, [], "failures of the model's side")
        said, status, key = result.out.splitlines()
        placeholder = key.removeprefix("key: ")
        expect_equal(status, "status: 0", f"the agent's end: {result.out[-800:]} {result.err[-800:]}")
        # The model heard of both tools, by the key; what it said of the key is not what the agent heard.
        expect_equal([(done["name"], word in json.dumps(done["response"])) for done, word in zip(api.results, (FILE, "42"))],
                     [("write_file", True), ("run_shell_command", True)], f"what the model heard: {api.results}")
        expect(api.keys == [KEY] * len(api.keys) and len(api.keys) >= 3, f"keys that the model's side got: {api.keys}")
        expect(len(placeholder) == len(KEY) and placeholder != KEY, f"what the agent has for a key: {placeholder}")
        expect_equal(said, f"All done with {placeholder}.", "the last word")
        expect_equal((work / FILE).read_text(), PROGRAM, "the file in the share")
        # Nobody but mvagent-secret had the key while the agent had all that it was ever given; the guest's memory was searched.
        has_key = sorted(name for name, found in seen.items() if found & set(words[:2]))
        expect_equal(has_key, ["mvagent-secret"], "processes that had the key")
        expect(words[2] in seen["mvagent-vmm"], "the guest's memory was not searched: what the agent wrote is not there")
        for path in (path for path in work.rglob("*") if path.is_file()):
            expect(not any(word in path.read_bytes() for word in words[:2]), f"the key is in {path}")
        expect(KEY not in result.out + result.err, "the key is in what came back")
        used = [(secret["name"], secret["host"], secret["used"]) for secret in outcome["network"]["secrets"]]
        expect_equal(used, [("GEMINI_API_KEY", "api.test", len(api.keys))], "uses on record")
        expect_equal(outcome["network"]["secrets_masked"], 1, "what was masked")


if __name__ == "__main__":
    harness.main(globals())
