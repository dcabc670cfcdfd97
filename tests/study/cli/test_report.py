"""`python -m study table`, `figure` and `report`."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import msgspec
import pytest

from study.cli import main
from study.pages.figures import figure_svg
from study.pages.page import Findings, report_page
from study.pages.table1 import latex, markdown
from study.pages.tables import comma_separated
from study.paper.gates import Gates
from study.runs.experiment import Experiment


@pytest.fixture(scope="module")
def folder(findings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in ("table1", "noise", "lambda", "gates", "fair"):
        results = findings.lambda_ if name == "lambda" else getattr(findings, name)
        results.save(folder / f"{name}.json")
    return folder


def fails(capsys, *arguments, code=2):
    assert main([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("memohop: ")
    assert err.count("\n") == 1
    return err


class TestTable:
    def table(self, capsys, folder, *arguments):
        assert main(["table", "table1", "--results", str(folder / "table1.json"), *arguments]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    def test_every_format(self, capsys, folder, tables):
        assert self.table(capsys, folder) == markdown(tables)
        assert self.table(capsys, folder, "--format", "latex") == latex(tables)
        rows = [row for table in tables for row in table.flat()]
        assert self.table(capsys, folder, "--format", "csv") == comma_separated(rows)
        assert json.loads(self.table(capsys, folder, "--format", "json")) == rows
        official = ("--protocol", "official", "--format", "json")
        assert json.loads(self.table(capsys, folder, *official)) == rows[126:]

    def test_mistakes(self, capsys, folder, tmp_path):
        file = folder / "table1.json"
        assert "fair" in fails(capsys, "table", "table1", "--results", file, "--protocol", "fair")
        assert "table2" in fails(capsys, "table", "table2")
        missing = tmp_path / "none.json"
        assert "none.json" in fails(capsys, "table", "table1", "--results", missing, code=1)

    def test_it_needs_no_pytorch(self, folder):
        code = (
            "import sys; from study.cli import main; "
            f"main(['table', 'table1', '--results', {str(folder / 'table1.json')!r}]); "
            "sys.exit('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr


class TestFigure:
    @pytest.mark.parametrize("name", ["noise", "lambda"])
    def test_it_writes_the_drawing(self, name, folder, findings, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        assert main(["figure", name, "--results", str(folder / f"{name}.json")]) == 0
        assert f"wrote {name}.svg" in capsys.readouterr().err
        results = {"noise": findings.noise, "lambda": findings.lambda_}[name]
        assert (tmp_path / f"{name}.svg").read_text("utf-8") == figure_svg(name, results)

    def test_mistakes(self, folder, capsys, tmp_path):
        noise = folder / "noise.json"
        where = ["figure", "noise", "--results", noise, "-o"]
        assert ".svg" in fails(capsys, *where, tmp_path / "x.png")
        assert "make it first" in fails(capsys, *where, tmp_path / "no" / "x.svg")
        wrong = ["figure", "lambda", "--results", noise, "-o", tmp_path / "x.svg"]
        assert "no axis 'lam'" in fails(capsys, *wrong, code=1)
        assert not (tmp_path / "x.svg").exists()


class TestReport:
    def test_it_writes_the_page(self, folder, page, tmp_path, capsys):
        output = tmp_path / "page.html"
        assert main(["report", "--results", str(folder), "-o", str(output)]) == 0
        assert "page.html" in capsys.readouterr().err
        assert output.read_text("utf-8") == page

    def test_the_packages_own_results_make_a_page(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["report"]) == 0
        text = (tmp_path / "memohop-report.html").read_text("utf-8")
        assert text == report_page(Findings.load())
        ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))

    def test_mistakes(self, capsys, tmp_path):
        assert "no such folder" in fails(capsys, "report", "--results", tmp_path / "none")
        assert ".html" in fails(capsys, "report", "-o", "page.pdf")


class TestGates:
    def test_it_trains_what_validation_chose_and_writes_the_file(
        self, folder, findings, tmp_path, monkeypatch, capsys
    ):
        jobs = []

        def measure(job, *, protocol, **_):
            jobs.append((job, protocol))
            return findings.gates.curves[0]

        monkeypatch.setattr("study.paper.gates.measure_gates", measure)
        where = ["--results", str(folder / "table1.json"), "--output", str(tmp_path / "gates.json")]
        assert main(["bench", "gates", "--datasets", "texas,cora", *where]) == 0
        assert "gates.json" in capsys.readouterr().err
        assert [(job.data.name, job.model) for job, _ in jobs] == [
            ("texas", "gcn+mmp"),
            ("cora", "gcn+mmp"),
        ]
        # Validation was made up to choose 0.2, and the rest is what table1 says.
        settings, *_ = Experiment("table1").row("official", "gcn+mmp", "texas")
        assert jobs[0][0] == settings.having({"lam": 0.2}).job("texas", "gcn+mmp")
        assert {protocol for _, protocol in jobs} == {"official"}
        written = Gates.load(tmp_path / "gates.json")
        assert written.curves == findings.gates.curves[:1] * 2
        assert written.command == (
            "python -m study bench gates --datasets texas,cora --model gcn+mmp --protocol official "
            "--output gates.json --results table1.json"
        )

    def test_an_interrupted_run_goes_on(self, folder, findings, tmp_path, monkeypatch):
        measured = []

        def measure(job, **_):
            if len(measured) == 1 and job.data.name == "cora":
                measured.append("interrupted")
                raise KeyboardInterrupt
            measured.append(job.data.name)
            return msgspec.structs.replace(findings.gates.curves[0], dataset=job.data.name)

        monkeypatch.setattr("study.paper.gates.measure_gates", measure)
        output = tmp_path / "gates.json"
        where = ["--results", str(folder / "table1.json"), "--output", str(output)]
        command = ["bench", "gates", "--datasets", "texas,cora", *where]
        assert main(command) != 0
        assert [curve.dataset for curve in Gates.load(output).curves] == ["texas"]
        assert main(command) == 0
        assert measured == ["texas", "interrupted", "cora"]
        assert [curve.dataset for curve in Gates.load(output).curves] == ["texas", "cora"]
        assert main([*command, "--protocol", "paper"]) == 0  # another command starts anew
        assert measured[3:] == ["texas", "cora"]

    def test_mistakes(self, folder, capsys, tmp_path):
        assert "has no gates" in fails(capsys, "bench", "gates", "--model", "gcn")
        assert "texass" in fails(capsys, "bench", "gates", "--datasets", "texass")
        other = tmp_path / "other.json"
        other.write_text("{}")
        command = ["bench", "gates", "--datasets", "texas", "--results", folder / "table1.json"]
        assert "give another name" in fails(capsys, *command, "-o", other)
        assert other.read_text() == "{}"
        nowhere = tmp_path / "no" / "gates.json"
        assert "make it first" in fails(capsys, "bench", "gates", "-o", nowhere)
        file = folder / "table1.json"
        cornell = ["bench", "gates", "--datasets", "cornell", "--results", file]
        assert "python -m study run table1" in fails(capsys, *cornell)
